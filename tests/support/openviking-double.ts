/** The double is published, so that others can test against it; this is where this project's tests look for it. */
export { startOpenVikingDouble, type OpenVikingControls, type OpenVikingDouble } from '../../src/testing/index.js'
