import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'

const FOLDER = new URL('public/', import.meta.url)
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Each file of `public` is a route of its own, read once: no path of a request is ever looked up on the disk. */
export async function servePage(app: FastifyInstance, token: string): Promise<void> {
  for (const name of await readdir(FOLDER)) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const body = await readFile(new URL(name, FOLDER))
    app.get(`/${name}`, (_request, reply) => reply.type(type).send(body))
  }
  const html = (await readFile(new URL('index.html', FOLDER), 'utf8')).replace('{{token}}', token)
  app.get('/', (_request, reply) => reply.type('text/html; charset=utf-8').send(html))
}
