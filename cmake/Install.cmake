# Headers, libraries, tool, manual, completion, and what find_package and pkg-config read. The component `tool` is what a
# tarball of the tool has.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/finetti)

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# Two export sets, because only the static library makes its user look for the libraries below it.
install(TARGETS finetti_shared EXPORT finettiTargets)
install(TARGETS finetti_static EXPORT finettiStaticTargets)
foreach(set IN ITEMS finettiTargets finettiStaticTargets)
  install(EXPORT ${set} NAMESPACE finetti:: DESTINATION ${package_dir})
endforeach()
list(JOIN finetti_modules " " config_modules)
configure_package_config_file(cmake/finettiConfig.cmake.in finettiConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(finettiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/finettiConfig.cmake ${PROJECT_BINARY_DIR}/finettiConfigVersion.cmake
  DESTINATION ${package_dir})

# Libs.private names the libraries themselves rather than Requires.private their pkg-config files:
# `pkg-config --static` would follow those down to libraries (-lssl, -lbz2, -lgfortran) that are
# only needed when every single one is linked statically, and that often are not installed.
set(pc_libs_private)
foreach(module IN LISTS finetti_modules)
  list(APPEND pc_libs_private ${${module}_LDFLAGS})
endforeach()
list(APPEND pc_libs_private ${OpenMP_C_FLAGS} -lpthread -ldl -lm)
list(REMOVE_DUPLICATES pc_libs_private)
list(JOIN pc_libs_private " " pc_libs_private)
# Paths relative to the file itself, so that --prefix and DESTDIR at install time need no edit.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_up "/${pc_dir}" "/")
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
configure_file(cmake/finetti.pc.in finetti.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/finetti.pc DESTINATION ${pc_dir})

if(TARGET finetti_cli)
  install(TARGETS finetti_cli COMPONENT tool)
endif()
if(TARGET finetti_mpi)
  install(TARGETS finetti_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/finetti)
endif()
file(GLOB man_pages CONFIGURE_DEPENDS docs/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
file(GLOB completion CONFIGURE_DEPENDS tools/completion/finetti.bash)
if(completion)
  install(FILES ${completion} RENAME finetti
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tool)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool)
