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
list(APPEND finetti_needs OpenMP::OpenMP_C Threads::Threads ${CMAKE_DL_LIBS} m)

# MPI is optional: without it studies and fits run on one machine. Only the module that the tool loads links it. Its
# libraries leak on purpose, so that a build with sanitizers does without.
if(FINETTI_MPI AND NOT FINETTI_SANITIZE)
  find_package(MPI QUIET COMPONENTS C)
endif()
if(NOT MPI_C_FOUND)
  message(STATUS "without MPI: studies run on one machine (Debian: libopenmpi-dev)")
endif()

# HDF5 is optional, and loaded when the first such file is opened: only its headers and the name that the loader knows
# it by are needed here.
option(FINETTI_HDF5 "read HDF5 files, if its headers are found" ON)
if(FINETTI_HDF5)
  find_path(HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
  find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial)
endif()
set(hdf5_definitions)
if(FINETTI_HDF5 AND HDF5_INCLUDE_DIR AND HDF5_LIBRARY)
  file(REAL_PATH ${HDF5_LIBRARY} hdf5_file)
  get_filename_component(hdf5_name ${hdf5_file} NAME)
  string(REGEX REPLACE "(\\.so\\.[0-9]+)\\..*" "\\1" hdf5_name ${hdf5_name})
  set(hdf5_definitions FINETTI_HDF5="${hdf5_name}")
else()
  message(STATUS "without HDF5: such files are refused (Debian: libhdf5-dev)")
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
