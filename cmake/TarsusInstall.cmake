# cmake --install BUILD --prefix PREFIX, or one part with --component development | tools.
include(CMakePackageConfigHelpers)
set(TARSUS_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tarsus)

install(TARGETS tarsus tarsus_baselines EXPORT tarsusTargets COMPONENT development)
install(DIRECTORY include/tarsus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inl")
install(EXPORT tarsusTargets NAMESPACE tarsus:: DESTINATION ${TARSUS_CONFIG_DIR} COMPONENT development)

get_target_property(TARSUS_LIBRARY_TYPE tarsus TYPE)
configure_package_config_file(cmake/tarsusConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tarsusConfig.cmake
                              INSTALL_DESTINATION ${TARSUS_CONFIG_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tarsusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tarsusConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tarsusConfigVersion.cmake
        DESTINATION ${TARSUS_CONFIG_DIR} COMPONENT development)

if(TARGET tarsus_cli)
  install(TARGETS tarsus_cli tarsus_kkt COMPONENT tools)
  install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/tarsus COMPONENT tools)
endif()
