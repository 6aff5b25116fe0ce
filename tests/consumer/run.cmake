# Installs the build tree BUILD below itself, then builds and runs main.c against what was
# installed: by find_package and by pkg-config, each with the shared and the static library.

set(work ${BUILD}/consumer)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
set(ENV{DESTDIR})
set(ENV{CFLAGS} "")
set(ENV{LDFLAGS} "")

file(STRINGS ${SRC}/include/finetti/base.h lines REGEX "^#define FIN_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
list(JOIN numbers "." version)

set(flags -Wall -Wextra -Werror)
if(SANITIZE)
  list(APPEND flags -fsanitize=${SANITIZE})
endif()
list(JOIN flags " " flags_text)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The program prints the version of the library it runs with, and needs libfinetti.so or not.
function(check program needs_shared)
  run(${program})
  if(NOT output STREQUAL "finetti ${version}\n")
    message(FATAL_ERROR "${program} printed '${output}' and not 'finetti ${version}'")
  endif()
  find_program(READELF readelf)
  if(READELF)
    run(${READELF} -d ${program})
    if(output MATCHES "libfinetti\\.so" AND NOT needs_shared)
      message(FATAL_ERROR "${program} should carry the static library, but needs libfinetti.so")
    elseif(NOT output MATCHES "libfinetti\\.so\\.0\\.[0-9]+[]]" AND needs_shared)
      message(FATAL_ERROR "${program} should need libfinetti.so.0.MINOR: until 1.0 every minor version is one of its own")
    endif()
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# The installed tool finds the module for MPI, if one was built, from where it is itself.
if(EXISTS ${BUILD}/finetti_mpi.so)
  run(${prefix}/bin/finetti info --json)
  if(NOT output MATCHES "\"MPI\": \"yes\"")
    message(FATAL_ERROR "${prefix}/bin/finetti does not find the module for MPI")
  endif()
endif()

# ---- find_package ------------------------------------------------------------------------------

run(${CMAKE_COMMAND} -S ${SRC}/tests/consumer -B ${work}/build -D CMAKE_C_COMPILER=${CC}
    -D "CMAKE_C_FLAGS=${flags_text}" -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/build)
check(${work}/build/with_shared TRUE)
check(${work}/build/with_static FALSE)

# ---- pkg-config --------------------------------------------------------------------------------

file(GLOB_RECURSE pc_file ${prefix}/*/finetti.pc)
get_filename_component(pc_dir "${pc_file}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${pc_dir}:$ENV{PKG_CONFIG_PATH}")

function(ask_pkg_config variable)
  run(pkg-config ${ARGN} finetti)
  string(STRIP "${output}" output)
  separate_arguments(output UNIX_COMMAND "${output}")
  set(${variable} ${output} PARENT_SCOPE)
endfunction()

ask_pkg_config(reported --modversion)
if(NOT reported STREQUAL version)
  message(FATAL_ERROR "pkg-config says version ${reported}, the header ${version}")
endif()
ask_pkg_config(cflags --cflags)
ask_pkg_config(libs --libs)
ask_pkg_config(static_libs --libs --static)
ask_pkg_config(libdir --variable=libdir)

set(main ${SRC}/tests/consumer/main.c)
run(${CC} ${flags} ${cflags} ${main} -o ${work}/pc_shared ${libs} -Wl,-rpath,${libdir})
check(${work}/pc_shared TRUE)
# -lfinetti would take the shared library where both are installed: the archive goes first.
run(${CC} ${flags} ${cflags} ${main} -o ${work}/pc_static ${libdir}/libfinetti.a
    -Wl,--as-needed ${static_libs})
check(${work}/pc_static FALSE)
