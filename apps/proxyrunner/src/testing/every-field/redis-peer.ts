import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

/** Notes what clients of a Redis say. It answers as much as they need to go on. */
export interface RedisPeer extends AsyncDisposable {
  readonly address: string
  /** Commands in their order; ids that are chance are replaced. */
  readonly commands: string[]
}

const INFO = 'redis_version:7.0.0\r\nrole:master\r\nloading:0\r\n'
/** First byte of a TLS handshake. */
const HANDSHAKE = 0x16

export async function startRedisPeer(tls?: { readonly certPem: string; readonly keyPem: string }): Promise<RedisPeer> {
  const commands: string[] = []
  const sockets = new Set<Socket>()
  const { promise: address, resolve } = Promise.withResolvers<AddressInfo>()

  const serve = async (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    const { port } = await address
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      if (chunk[0] === HANDSHAKE) {
        commands.push('tls')
        socket.destroy()
        return
      }
      text += chunk.toString('latin1')
      for (let read = readCommand(text); read !== undefined; read = readCommand(text)) {
        text = text.slice(read.length)
        commands.push(described(read.words))
        socket.write(answerTo(read.words, port))
      }
    })
  }
  const server: Server = tls === undefined ? createServer(serve) : createTlsServer({ cert: tls.certPem, key: tls.keyPem }, serve)
  server.on('tlsClientError', () => commands.push('untrusted'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  resolve(server.address() as AddressInfo)
  return {
    address: `127.0.0.1:${(await address).port}`,
    commands,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((done) => server.close(done))
    },
  }
}

/** One command of RESP: a list of texts with their lengths. Undefined while it is not complete. */
function readCommand(text: string): { words: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (head === null) return undefined
  const words: string[] = []
  let at = head[0].length
  for (let left = Number(head[1]); left > 0; left--) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at))
    if (size === null) return undefined
    const begin = at + size[0].length
    const end = begin + Number(size[1])
    if (text.length < end + 2) return undefined
    words.push(text.slice(begin, end))
    at = end + 2
  }
  return { words, length: at }
}

/** Of scripts the keys, of the rest everything. */
function described([name = '', ...rest]: readonly string[]): string {
  const isScript = /^eval/i.test(name)
  const shown = isScript ? rest.slice(2, 2 + Number(rest[1])) : rest
  return [name.toLowerCase(), ...shown.map((word) => word.replaceAll(/[\w-]{20,}/g, 'ID'))].join(' ')
}

function answerTo([name = '', first = '']: readonly string[], port: number): string {
  switch (name.toLowerCase()) {
    case 'info':
      return bulk(INFO)
    case 'role':
      return `*3\r\n${bulk('master')}:0\r\n*0\r\n`
    case 'sentinel':
      return first.toLowerCase() === 'get-master-addr-by-name' ? `*2\r\n${bulk('127.0.0.1')}${bulk(String(port))}` : '*0\r\n'
    case 'eval':
    case 'evalsha':
      return ':1\r\n'
    default:
      return '+OK\r\n'
  }
}

function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`
}
