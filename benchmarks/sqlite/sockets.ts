import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

export interface Served {
  /** Answered requests a second, all sockets being connected before. */
  readonly rate: number
  /** Marks a transaction, on the average. */
  readonly meanBatch: number
}

/** So many sockets, each asking again as soon as it was answered. */
export async function serve(directory: string, kind: string, sockets: number, requests: number): Promise<Served> {
  const script = fileURLToPath(new URL('./server.ts', import.meta.url))
  const server = fork(script, [directory, kind], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const { port } = await receive<{ port: number }>(server)
  const each = Math.ceil(requests / sockets)
  const connected = await Promise.all(Array.from({ length: sockets }, () => open(port)))
  const start = performance.now()
  await Promise.all(connected.map((socket, index) => converse(socket, index, each)))
  const rate = (each * sockets * 1_000) / (performance.now() - start)
  server.send('end')
  const { batches, marks } = await receive<{ batches: number; marks: number }>(server)
  await once(server, 'exit')
  return { rate, meanBatch: batches === 0 ? 0 : marks / batches }
}

async function receive<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, 'message')) as [T]
  return message
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

/** HTTP by hand: a client library would be the slowest part of it. */
function converse(socket: Socket, index: number, requests: number): Promise<void> {
  const messages = [
    { role: 'user', content: 'x'.repeat(200) },
    { role: 'assistant', content: 'y'.repeat(300) },
  ]
  const body = JSON.stringify({ sessionId: `session-${index}`, messages })
  const head = `POST /turns HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  const request = `${head}\r\n\r\n${body}`
  return new Promise((resolve, reject) => {
    socket.write(request)
    let left = requests
    let pending = ''
    socket.on('data', (chunk) => {
      pending += chunk.toString('latin1')
      if (!isWholeResponse(pending)) return
      pending = ''
      left -= 1
      if (left > 0) socket.write(request)
      else socket.end(resolve)
    })
    socket.on('error', reject)
  })
}

function isWholeResponse(response: string): boolean {
  const head = response.indexOf('\r\n\r\n')
  const length = /content-length: (\d+)/i.exec(response)?.[1]
  return head >= 0 && length !== undefined && response.length - head - 4 >= Number(length)
}
