export { OpenVikingProvider, type OpenVikingHealth, type RecallOptions } from './provider.js'
export type { OpenVikingOptions } from './options.js'
