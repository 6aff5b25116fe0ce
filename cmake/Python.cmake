# The Python package: `make wheel` leaves build/python/finetti-<version>-cp39-abi3-<platform>.whl, and the tests
# run on that wheel, installed in an environment of their own (build/python/venv).
#
#   python/tests/test_*.py        test python, one session of pytest, label "lean"
#   python/tests/all/test_*.py    test python_all, the same for what is slow, label "all"
#   python/tests/long/test_*.py   test python_long, what takes minutes by nature, label "long"
#   examples/python/*.py          test python_example_<name>, label "all": they draw with matplotlib
#
# Tests get FINETTI, SRC, BUILD and PYTHON as scripts do (Tests.cmake), WHEEL, and FINETTI_TEST_SIZE, which says on how
# many random inputs laws are tried (python/tests/conftest.py).

# The names among ARGN that Python cannot import ("Python.h" is the header).
function(find_missing result)
  set(missing python3)
  if(FINETTI_PYTHON)
    execute_process(COMMAND ${FINETTI_PYTHON} -c "
import importlib.util, os, sys, sysconfig
header = os.path.join(sysconfig.get_path('include'), 'Python.h')
print(*[name for name in sys.argv[1:] if not
        (os.path.exists(header) if name == 'Python.h' else importlib.util.find_spec(name))], sep=', ')" ${ARGN}
      OUTPUT_VARIABLE missing OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(failed)
      set(missing "a Python that works, unlike ${FINETTI_PYTHON}")
    endif()
  endif()
  set(${result} "${missing}" PARENT_SCOPE)
endfunction()

find_missing(missing Python.h cffi setuptools wheel numpy sklearn)
if(missing)
  message(STATUS "the Python package is left out, for want of: ${missing} (see tools/setup.sh)")
  if(BUILD_TESTING)
    leave_out(python "for want of ${missing} (see tools/setup.sh)")
  endif()
  return()
endif()

# ---- the library inside the wheel --------------------------------------------------------------

# The same objects; only that it says nothing of where this build found what it needs.
add_library(finetti_python SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:finetti_objects>)
target_link_libraries(finetti_python PRIVATE ${finetti_needs})
set(python_dir ${PROJECT_BINARY_DIR}/python)
set_target_properties(finetti_python PROPERTIES OUTPUT_NAME finetti LIBRARY_OUTPUT_DIRECTORY ${python_dir}/library
  VERSION ${PROJECT_VERSION} SOVERSION ${finetti_soversion}
  C_VISIBILITY_PRESET hidden LINKER_LANGUAGE C SKIP_BUILD_RPATH ON)
if(NOT FINETTI_SANITIZE AND NOT APPLE)
  target_link_options(finetti_python PRIVATE -Wl,--no-undefined)
endif()

# ---- the wheel ---------------------------------------------------------------------------------

# Built from a copy, so that nothing is written into the source tree.
file(GLOB python_sources CONFIGURE_DEPENDS python/*.py python/*.toml python/*.md
     python/finetti/*.py python/finetti/*.pyi python/finetti/py.typed)
if(FINETTI_SANITIZE)
  # Stubs are written by a Python that imports the package, which takes a sanitizer's run-time there (see below).
  list(FILTER python_sources EXCLUDE REGEX "/stubs\\.py$")
endif()
file(GLOB_RECURSE python_headers CONFIGURE_DEPENDS include/*.h)
add_custom_command(OUTPUT ${python_dir}/wheel.stamp
  COMMAND ${CMAKE_COMMAND} -D PYTHON=${FINETTI_PYTHON} -D CC=${CMAKE_C_COMPILER} -D SRC=${PROJECT_SOURCE_DIR}
          -D DIR=${python_dir} "-DFILES=${python_sources}" -P ${PROJECT_SOURCE_DIR}/cmake/make_wheel.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${python_dir}/wheel.stamp
  DEPENDS finetti_python ${python_sources} ${python_headers} ${PROJECT_SOURCE_DIR}/README.md
          ${PROJECT_SOURCE_DIR}/cmake/make_wheel.cmake
  COMMENT "Building the wheel" VERBATIM)
add_custom_target(wheel DEPENDS ${python_dir}/wheel.stamp)

# ---- the wheel, installed ----------------------------------------------------------------------

find_missing(missing venv pip)
if(missing)
  if(BUILD_TESTING)
    leave_out(python "for want of ${missing} (see tools/setup.sh)")
  endif()
  return()
endif()
add_custom_command(OUTPUT ${python_dir}/venv.stamp
  COMMAND ${FINETTI_PYTHON} -m venv --clear --system-site-packages --without-pip ${python_dir}/venv
  COMMAND ${FINETTI_PYTHON} -m pip --python ${python_dir}/venv/bin/python --quiet --disable-pip-version-check
          --no-cache-dir install --no-index --no-deps --find-links ${python_dir} finetti
  COMMAND ${CMAKE_COMMAND} -E touch ${python_dir}/venv.stamp
  DEPENDS ${python_dir}/wheel.stamp
  COMMENT "Installing the wheel in an environment of its own" VERBATIM)
add_custom_target(python_venv DEPENDS ${python_dir}/venv.stamp)
add_dependencies(python_venv wheel)

# ---- tests -------------------------------------------------------------------------------------

# With clang the library would bring a second OpenMP run-time into a process that has gcc's already (scikit-learn's).
if(NOT BUILD_TESTING OR NOT CMAKE_C_COMPILER_ID STREQUAL GNU OR
   (FINETTI_SANITIZE AND NOT FINETTI_SANITIZE MATCHES "address"))
  return()
endif()
find_missing(missing pytest hypothesis pandas)
if(missing)
  leave_out(python "for want of ${missing} (see tools/setup.sh)")
  return()
endif()
add_dependencies(tests python_venv)

set(python_environment ${script_environment} PYTHON=${python_dir}/venv/bin/python WHEEL=${python_dir}
  PYTHONDONTWRITEBYTECODE=1 MPLBACKEND=Agg)
list(FILTER python_environment EXCLUDE REGEX "^PYTHON=${FINETTI_PYTHON}$")
if(FINETTI_SANITIZE)
  # Python itself has no sanitizer in it, so that the run-time has to be there before all else, and with it the C++
  # library, whose exceptions it watches. What Python never frees is no leak of ours; its small blocks come from
  # malloc, so that they have fences around them.
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE asan
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libstdc++.so.6 OUTPUT_VARIABLE stdcxx
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(FILTER python_environment EXCLUDE REGEX "^ASAN_OPTIONS=")
  list(APPEND python_environment PYTHONMALLOC=malloc LD_PRELOAD=${asan}:${stdcxx}
       ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0)
endif()
file(MAKE_DIRECTORY ${python_dir}/tests ${python_dir}/examples)

# One session for all files: what they import is imported once. It is long, so that it begins first.
function(add_python_session name label size)
  add_test(NAME ${name} COMMAND ${python_dir}/venv/bin/python -m pytest -q -p no:cacheprovider ${ARGN}
           WORKING_DIRECTORY ${python_dir}/tests)
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 1800 COST 1000
    ENVIRONMENT "${python_environment};FINETTI_TEST_SIZE=${size}")
endfunction()

file(GLOB lean CONFIGURE_DEPENDS python/tests/test_*.py)
if(FINETTI_SANITIZE) # it is slow: those that hand odd memory to the library, interrupt it, or are called back by it
  list(FILTER lean INCLUDE REGEX "/test_(bad_.*|core|context|store|bags|labels|tasks|package)\\.py$")
  add_python_session(python lean small ${lean})
  return()
endif()
add_python_session(python lean usual ${lean})

# Laws, and agreement with the tool, on ever more random inputs.
set(laws ${lean})
list(FILTER laws INCLUDE REGEX "/test_(properties|tool|faces)\\.py$")
file(GLOB all CONFIGURE_DEPENDS python/tests/all/test_*.py)
file(GLOB long CONFIGURE_DEPENDS python/tests/long/test_*.py)
add_python_session(python_all all more ${laws} ${all})
add_python_session(python_long long full ${laws} ${long})

file(GLOB scripts CONFIGURE_DEPENDS examples/python/*.py)
foreach(script IN LISTS scripts)
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME python_example_${name} COMMAND ${python_dir}/venv/bin/python ${script}
           WORKING_DIRECTORY ${python_dir}/examples)
  # A script that cannot run here says why and ends with 77.
  set_tests_properties(python_example_${name} PROPERTIES LABELS all TIMEOUT 900 SKIP_RETURN_CODE 77
    ENVIRONMENT "${python_environment}")
endforeach()
