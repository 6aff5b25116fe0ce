# The libraries below this one. All of them are private: no public header shows them.

find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
if(FINETTI_SANITIZE MATCHES "thread")
  # No OpenMP run-time is instrumented: archer, which belongs to clang's, tells ThreadSanitizer of its
  # barriers and locks. gcc's has nothing of the kind, and every barrier of it would be a report.
  get_filename_component(openmp_folder "${OpenMP_omp_LIBRARY}" DIRECTORY)
  find_library(FINETTI_ARCHER archer PATHS ${openmp_folder} NO_DEFAULT_PATH)
  if(NOT FINETTI_ARCHER)
    message(FATAL_ERROR "FINETTI_SANITIZE=thread needs clang, and archer beside its OpenMP run-time "
                        "(Debian: libomp-dev)")
  endif()
endif()
set(THREADS_PREFER_PTHREAD_FLAG OFF)
find_package(Threads REQUIRED)

set(finetti_modules sleef openblas lapacke libzip zlib sqlite3 yaml-0.1 libxxhash jansson)
foreach(module IN LISTS finetti_modules)
  pkg_check_modules(${module} REQUIRED IMPORTED_TARGET ${module})
endforeach()
list(TRANSFORM finetti_modules PREPEND PkgConfig:: OUTPUT_VARIABLE finetti_needs)
list(APPEND finetti_needs OpenMP::OpenMP_C Threads::Threads m)

# SUNDIALS has no pkg-config file; its CVODE library holds the vectors and solvers it needs, up to
# version 6, after that a core beside it does.
find_path(SUNDIALS_INCLUDE_DIR cvode/cvode.h)
find_library(SUNDIALS_CVODE_LIBRARY sundials_cvode)
find_library(SUNDIALS_CORE_LIBRARY sundials_core)
set(sundials_major 0)
if(SUNDIALS_INCLUDE_DIR AND SUNDIALS_CVODE_LIBRARY)
  file(STRINGS ${SUNDIALS_INCLUDE_DIR}/sundials/sundials_config.h sundials_line
       REGEX "^#define SUNDIALS_VERSION_MAJOR ")
  string(REGEX REPLACE "[^0-9]" "" sundials_major "${sundials_line}")
endif()
if(sundials_major LESS 6)
  message(FATAL_ERROR "SUNDIALS 6 or later with CVODE is missing: the header cvode/cvode.h and the "
                      "library sundials_cvode (Debian: libsundials-dev)")
endif()
if(NOT SUNDIALS_INCLUDE_DIR IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
  include_directories(SYSTEM ${SUNDIALS_INCLUDE_DIR})
endif()
# What is linked with, and what finetti.pc says: by name, where the linker looks by itself.
set(finetti_sundials)
foreach(library IN ITEMS ${SUNDIALS_CVODE_LIBRARY} ${SUNDIALS_CORE_LIBRARY})
  get_filename_component(folder ${library} DIRECTORY)
  if(library MATCHES "/lib(sundials_(cvode|core))\\.[^/]*$" AND
     folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    list(APPEND finetti_sundials -l${CMAKE_MATCH_1})
  elseif(library)
    list(APPEND finetti_sundials ${library})
  endif()
endforeach()
list(PREPEND finetti_needs ${finetti_sundials})

# MPI is optional: without it studies and fits run on one machine. Only the module that the tool loads links it. Its
# libraries leak on purpose, so that a build with sanitizers does without.
if(FINETTI_MPI AND NOT FINETTI_SANITIZE)
  find_package(MPI QUIET COMPONENTS C)
endif()
if(NOT MPI_C_FOUND)
  message(STATUS "without MPI: studies run on one machine (Debian: libopenmpi-dev)")
endif()

# Random123 is headers only.
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h)
if(NOT RANDOM123_INCLUDE_DIR)
  message(FATAL_ERROR "the header Random123/philox.h is missing (Debian: librandom123-dev)")
endif()
if(NOT RANDOM123_INCLUDE_DIR IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
  include_directories(SYSTEM ${RANDOM123_INCLUDE_DIR})
endif()

# For the wheel and for tests. The system's own Python where there is one, whatever else the user's PATH has in
# front of it.
find_program(FINETTI_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(FINETTI_PYTHON python3)

# The tests alone; without it they are left out.
pkg_check_modules(cmocka IMPORTED_TARGET QUIET cmocka)
