# The page to play with, build/web/index.html: the library's own C, compiled by clang to a WebAssembly module without
# imports, inside one HTML file (tools/web_page.py). `make web` turns it on; where clang or wasi-libc is missing it is
# left out. The tool carries the page if it was built (cmake/Embed.cmake; `finetti explore` writes it).
option(FINETTI_WEB "the explorable page, if clang and wasi-libc are found" OFF)

set(web_page)
if(NOT FINETTI_WEB)
  return()
endif()
find_program(FINETTI_WEB_CLANG clang)
find_program(FINETTI_WEB_LD wasm-ld)
find_path(FINETTI_WEB_LIBC stdlib.h PATHS /usr/include/wasm32-wasi NO_DEFAULT_PATH)
if(NOT FINETTI_WEB_CLANG OR NOT FINETTI_WEB_LD OR NOT FINETTI_WEB_LIBC OR NOT FINETTI_PYTHON)
  message(STATUS "the page to play with is left out: it needs clang, lld, wasi-libc and libclang-rt-dev-wasm32 "
                 "(tools/setup.sh web)")
  return()
endif()

# One thread (no OpenMP), no files: left out are kernels for other processors, OpenBLAS, vectors in R^d and
# layers; web/plain has what stands in their place. Random123 asks for a processor that it knows.
set(web_folder ${PROJECT_BINARY_DIR}/web)
file(GLOB web_sources CONFIGURE_DEPENDS web/*.c web/plain/*.c
     src/base/*.c src/kernel/*.c src/random/*.c src/math/*.c src/task/*.c src/family/*.c
     src/attention/*.c src/context/*.c src/theory/*.c src/train/*.c)
list(APPEND web_sources ${PROJECT_SOURCE_DIR}/src/lab/rate.c ${PROJECT_SOURCE_DIR}/src/lab/rate_target.c
     ${PROJECT_SOURCE_DIR}/src/command/result.c ${PROJECT_SOURCE_DIR}/src/command/words.c
     ${PROJECT_SOURCE_DIR}/src/data/text.c)
list(FILTER web_sources EXCLUDE REGEX "_avx(2|512)\\.c$|src/kernel/kernel\\.c$|/math/blas\\.c$|/train/(ambient|layer)\\.c$")
set(web_flags --target=wasm32-wasi -std=c11 -ffp-contract=off -ffunction-sections -fdata-sections
    -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-variable -D__riscv=0 -D_POSIX_C_SOURCE=200809L
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(FINETTI_WERROR)
  list(APPEND web_flags -Werror)
endif()

# What web/web.h lists is exported, and nothing else.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS web/web.h)
file(READ web/web.h web_header)
string(REGEX MATCHALL "\n    C\\([a-z]+" web_calls "${web_header}")
list(TRANSFORM web_calls REPLACE ".*\\(" "-Wl,--export=web_")
foreach(call IN ITEMS message take give_back)
  list(APPEND web_calls -Wl,--export=web_${call})
endforeach()

# Two modules of the same sources: scalar, and simd, whose kernel needs instructions that not every browser has. The page
# takes the second where it may (web/page.js). Kernels are compiled for speed, the rest for size.
set(web_modules)
foreach(kind IN ITEMS scalar simd)
  file(GLOB sources CONFIGURE_DEPENDS web/${kind}/*.c)
  list(APPEND sources ${web_sources})
  set(folders web/${kind} web/plain)
  set(flags ${web_flags})
  if(kind STREQUAL simd)
    list(APPEND flags -msimd128)
  endif()
  list(TRANSFORM folders PREPEND -I${PROJECT_SOURCE_DIR}/)
  file(MAKE_DIRECTORY ${web_folder}/${kind})
  set(objects)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
    string(REPLACE "/" "_" name ${name})
    set(object ${web_folder}/${kind}/${name}.o)
    set(speed -Oz)
    if(name MATCHES "kernel")
      set(speed -O2)
    endif()
    add_custom_command(OUTPUT ${object}
      COMMAND ${FINETTI_CCACHE} ${FINETTI_WEB_CLANG} ${flags} ${speed} ${folders}
              -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/web
              -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "web ${kind} ${name}")
    list(APPEND objects ${object})
  endforeach()
  set(module ${web_folder}/${kind}.wasm)
  add_custom_command(OUTPUT ${module}
    COMMAND ${FINETTI_WEB_CLANG} --target=wasm32-wasi -nostartfiles -Wl,--no-entry -Wl,--gc-sections -Wl,--strip-all
            -Wl,-z,stack-size=1048576 -Wl,--stack-first ${web_calls} ${objects} -lm -o ${module}
    DEPENDS ${objects} web/web.h VERBATIM COMMENT "web ${kind}.wasm")
  list(APPEND web_modules ${module})
endforeach()

file(GLOB web_parts CONFIGURE_DEPENDS web/*.js web/*.css web/*.html)
set(web_page ${web_folder}/index.html)
add_custom_command(OUTPUT ${web_page}
  COMMAND ${FINETTI_PYTHON} ${PROJECT_SOURCE_DIR}/tools/web_page.py ${PROJECT_SOURCE_DIR} ${web_modules} ${web_page}
  DEPENDS ${web_modules} ${web_parts} ${PROJECT_SOURCE_DIR}/tools/web_page.py
          ${PROJECT_SOURCE_DIR}/third_party/uplot/uPlot.iife.min.js ${PROJECT_SOURCE_DIR}/third_party/uplot/uPlot.min.css
  VERBATIM)
add_custom_target(web DEPENDS ${web_page})
