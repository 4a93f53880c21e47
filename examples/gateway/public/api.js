/** The gateway's answer was an error; `code` and `message` are its own words. */
export class ApiError extends Error {
  constructor(status, { code = 'UNKNOWN', message = `HTTP ${status}` } = {}) {
    super(message)
    this.code = code
  }
}

let token = document.querySelector('meta[name="gateway-token"]').content

export const api = {
  health: () => request('GET', '/api/health'),
  chats: () => request('GET', '/api/sessions'),
  newChat: (previousId) => request('POST', '/api/sessions', previousId ? { previousId } : {}),
  chat: (id) => request('GET', `/api/sessions/${id}`),
  ask: (id, text) => request('POST', `/api/sessions/${id}/turns`, { text }),
  cancel: (id, runId) => request('POST', `/api/sessions/${id}/runs/${runId}/cancel`),
  undo: (id) => request('POST', `/api/sessions/${id}/undo`),
  retry: (id) => request('POST', `/api/sessions/${id}/retry`),
  facts: () => request('GET', '/api/memory/facts'),
  forget: (id) => request('DELETE', `/api/memory/facts/${id}`),
}

async function request(method, path, body, isSecondTry = false) {
  const headers = {}
  if (method !== 'GET') headers['x-gateway-token'] = token
  if (body !== undefined) headers['content-type'] = 'application/json'
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
  const text = await response.text()
  const data = text === '' ? undefined : JSON.parse(text)
  if (response.ok) return data
  const error = new ApiError(response.status, data?.error)
  if (error.code !== 'TOKEN_WRONG' || isSecondTry) throw error
  // The gateway was started again since this page was loaded: it has a new token.
  const page = await (await fetch('/')).text()
  token = new DOMParser().parseFromString(page, 'text/html').querySelector('meta[name="gateway-token"]').content
  return request(method, path, body, true)
}
