import { randomBytes, timingSafeEqual } from 'node:crypto'
import { chmod, mkdir, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { endpointSlices, services } from '@thv/kube'
import { createNameService, type NameAnswer, type NameQuestion, type NameServiceOptions } from './name-service.ts'

export interface ResolverOptions extends NameServiceOptions {
  /** The socket lies in it where its path is short enough, which the system limits to about a hundred bytes. */
  readonly folder: string
  readonly signal?: AbortSignal
  readonly onError?: (error: unknown) => void
}

/** Answers our own processes where cluster names lead; its client is `connect-hook` of `@thv/http`. */
export interface Resolver extends AsyncDisposable {
  /** The value of THV_RESOLVER: `unix:PATH` or `tcp:127.0.0.1:PORT:TOKEN`. */
  readonly endpoint: string
  close(): Promise<void>
}

const MAX_PATH = 100
const MAX_QUESTION = 4_096
const MAX_CONNECTIONS = 512
const QUESTION_MS = 5_000

/** Resolves when Services and endpoints have been read, so that no name is taken for a foreign one. */
export async function startResolver(options: ResolverOptions): Promise<Resolver> {
  const { caches, folder, signal, onError = () => undefined } = options
  const path = join(folder, 'resolver.sock')
  const overTcp = process.platform === 'win32' || Buffer.byteLength(path) > MAX_PATH
  const token = overTcp ? randomBytes(24).toString('base64url') : undefined
  const names = createNameService(options)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    answerOne(socket, (text) => answerText(text, token, names.answer))
  })
  server.maxConnections = MAX_CONNECTIONS

  async function close(): Promise<void> {
    names.close()
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const socket of sockets) socket.destroy()
    await closed
  }

  try {
    await Promise.all([caches.of(services).waitForSync(signal), caches.of(endpointSlices).waitForSync(signal)])
    if (!overTcp) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await rm(path, { force: true }) // of a run that was killed
    }
    await listen(server, overTcp ? { host: '127.0.0.1', port: 0 } : { path })
    if (!overTcp) await chmod(path, 0o600)
  } catch (error) {
    await close()
    throw error
  }
  server.on('error', onError)
  const bound = server.address()
  const endpoint = typeof bound === 'object' && bound !== null ? `tcp:127.0.0.1:${bound.port}:${token}` : `unix:${path}`
  return { endpoint, close, [Symbol.asyncDispose]: close }
}

/** One line in, one line out, and the end. Who sends too much or too slowly is cut off. */
function answerOne(socket: Socket, answer: (text: string) => object): void {
  let text = ''
  socket.setEncoding('utf8')
  socket.setTimeout(QUESTION_MS, () => socket.destroy())
  socket.on('error', () => undefined) // `close` follows
  socket.on('data', (chunk: string) => {
    text += chunk
    const end = text.indexOf('\n')
    if (end < 0 && text.length <= MAX_QUESTION) return
    socket.removeAllListeners('data').resume()
    socket.end(`${JSON.stringify(end < 0 || end > MAX_QUESTION ? { problem: 'the question is too long' } : answer(text.slice(0, end)))}\n`)
  })
}

function answerText(text: string, token: string | undefined, answer: (question: NameQuestion) => NameAnswer): object {
  const question = parseQuestion(text)
  if (question === undefined) return { problem: 'the question is malformed' }
  if (token !== undefined && !sameText(question.token ?? '', token)) return { problem: 'the token is wrong' }
  return answer(question)
}

function parseQuestion(text: string): (NameQuestion & { readonly token?: string }) | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined // the caller reports it
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { host, port, namespace, from, token } = value as Record<string, unknown>
  if (typeof host !== 'string' || typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) return undefined
  const texts = Object.entries({ namespace, from, token }).filter(([, one]) => typeof one === 'string')
  return { host, port, ...Object.fromEntries(texts) }
}

function sameText(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function listen(server: Server, at: { path: string } | { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error) => reject(new ThvError('listen_failed', "the platform's resolver cannot listen", { cause }))
    server.once('error', onError)
    server.listen(at, () => {
      server.off('error', onError)
      resolve()
    })
  })
}
