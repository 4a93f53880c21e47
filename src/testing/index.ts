export { startOpenVikingDouble } from './openviking-double/index.js'
export type { OpenVikingControls, OpenVikingDouble, OpenVikingDoubleOptions } from './openviking-double/index.js'
