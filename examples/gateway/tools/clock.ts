import type { Tool } from './tool.js'

export const clock: Tool = {
  schema: {
    type: 'function',
    function: {
      name: 'clock',
      description: 'Tells the date and the time of the server.',
      parameters: { type: 'object', properties: {}, additionalProperties: false },
    },
  },
  run: () => new Date().toLocaleString('en-GB', { dateStyle: 'full', timeStyle: 'short' }),
}
