# Compiler flags for everything in the tree.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Results are promised to the last bit: no contraction of a*b+c by the compiler (kernels ask for
# fused operations by name), no value-changing optimisation.
add_compile_options(-ffp-contract=off)
add_compile_definitions(_POSIX_C_SOURCE=200809L)
# An assertion names its file as the source tree does, wherever that tree stands.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${PROJECT_BINARY_DIR}/=)

# A compiler cache, where there is one, makes building again cheap; nothing needs it.
find_program(FINETTI_CCACHE ccache)
if(FINETTI_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${FINETTI_CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla)
if(FINETTI_WERROR)
  add_compile_options(-Werror)
endif()

if(FINETTI_SANITIZE)
  set(sanitize_flags -fsanitize=${FINETTI_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${sanitize_flags} $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>) # wrong at -O1
  add_link_options(${sanitize_flags})
endif()
