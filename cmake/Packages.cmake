# Debian packages. `cpack --config build/release/CPackConfig.cmake` makes the package rooflined. If the build has the CUDA worker,
# it also makes rooflined-cuda. The command does not need root. dpkg-shlibdeps finds the libraries that rooflined depends on.
# NVIDIA's libraries are only recommended, because many hosts install them without packages.
set(RL_MAINTAINER "The rooflined authors <rooflined@users.noreply.github.com>" CACHE STRING "Maintainer named by the packages")

set(packaging ${CMAKE_SOURCE_DIR}/cmake/packages)
set(packaged ${CMAKE_BINARY_DIR}/packages)
string(TIMESTAMP RL_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(READ ${CMAKE_SOURCE_DIR}/LICENSE RL_LICENSE)
configure_file(${packaging}/copyright.in ${packaged}/copyright @ONLY)
configure_file(${packaging}/changelog.in ${packaged}/changelog.Debian @ONLY)
file(REMOVE ${packaged}/changelog.Debian.gz)
execute_process(COMMAND gzip -9n ${packaged}/changelog.Debian)

set(docs ${CMAKE_INSTALL_DATADIR}/doc)
install(FILES ${packaged}/copyright ${packaged}/changelog.Debian.gz DESTINATION ${docs}/rooflined OPTIONAL)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION ${docs}/rooflined OPTIONAL)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${docs}/rooflined OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON) # the units contain the prefix, not the folder in which CPack collects the files
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_PACKAGE_NAME rooflined)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GPU profiling daemon with an HTTP API and a database")
set(CPACK_PACKAGE_CONTACT ${RL_MAINTAINER})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL rooflined)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_ROOFLINED_PACKAGE_NAME rooflined)
set(CPACK_DEBIAN_ROOFLINED_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ROOFLINED_PACKAGE_SUGGESTS "rooflined-cuda, ca-certificates")
set(CPACK_DEBIAN_ROOFLINED_PACKAGE_CONTROL_EXTRA ${packaging}/postinst ${packaging}/prerm ${packaging}/postrm)
set(CPACK_COMPONENT_ROOFLINED_DESCRIPTION "Trains models and runs kernels on the machine's devices, measures times and
hardware counters, and stores every number in SQLite with the device, clocks,
driver and commit that produced it. This package has the daemon, its client,
the web page, systemd units and the worker for CPUs.")

if(RL_HAVE_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  install(FILES ${packaged}/copyright ${packaged}/changelog.Debian.gz DESTINATION ${docs}/rooflined-cuda COMPONENT cuda)
  set(major ${CUDAToolkit_VERSION_MAJOR})
  set(cuda ${major}-${CUDAToolkit_VERSION_MINOR})
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME rooflined-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "rooflined (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libc6, libstdc++6")
  set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS
    "libcudnn9-cuda-${major}, libcublas-${cuda}, cuda-nvrtc-${cuda}, cuda-cupti-${cuda}, cuda-nvdisasm-${cuda}")
  set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${packaging}/cuda/postinst ${packaging}/cuda/postrm)
  set(CPACK_COMPONENT_CUDA_DESCRIPTION "This package has the worker for NVIDIA GPUs, which profiles with CUPTI.
It needs a driver for CUDA ${major} and cuDNN 9.")
endif()
include(CPack)
