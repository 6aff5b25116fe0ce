# The libraries below this one. All of them are private: no public header shows them.

find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
set(THREADS_PREFER_PTHREAD_FLAG OFF)
find_package(Threads REQUIRED)

set(finetti_modules sleef openblas lapacke libzip)
foreach(module IN LISTS finetti_modules)
  pkg_check_modules(${module} REQUIRED IMPORTED_TARGET ${module})
endforeach()
list(TRANSFORM finetti_modules PREPEND PkgConfig:: OUTPUT_VARIABLE finetti_needs)
list(APPEND finetti_needs OpenMP::OpenMP_C Threads::Threads m)

# Random123 is headers only.
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h)
if(NOT RANDOM123_INCLUDE_DIR)
  message(FATAL_ERROR "the header Random123/philox.h is missing (Debian: librandom123-dev)")
endif()
if(NOT RANDOM123_INCLUDE_DIR IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
  include_directories(SYSTEM ${RANDOM123_INCLUDE_DIR})
endif()

# The command line tool alone.
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)

# The tests alone; without it they are left out.
pkg_check_modules(cmocka IMPORTED_TARGET QUIET cmocka)
