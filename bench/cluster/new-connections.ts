import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createPeerCheck } from '@thv/http/server/peer-check'
import { sendText } from '@thv/http/server/respond'
import { createHttpServer, type HttpServerOptions } from '@thv/http/server/server'
import { median } from '../figure.ts'

/*
 * A server with the same-user check and one without, in one process, and a client in a thread of its own that keeps connections open and
 * makes new ones, each with one request. Prints how long the servers' event loop was held up meanwhile.
 */

export interface NewConnections {
  /** Of one new connection at a time. */
  readonly plain: Held
  readonly checked: Held
  /** Of many at the same moment. */
  readonly plainBurst: Held
  readonly checkedBurst: Held
  /** One read of the kernel's list on the event loop, for comparison. */
  readonly syncReadMs: number
}

export interface Held {
  /** Longest turn of the event loop; the median and the worst of all rounds. */
  readonly turnMs: number
  readonly worstTurnMs: number
  /** Until the answer, the median. */
  readonly answerMs: number
}

interface Order {
  readonly port: number
  readonly count: number
}

const OPEN = Number(process.env['OPEN_SOCKETS'] ?? 1_000)
const ROUNDS = Number(process.env['ROUNDS'] ?? 200)
const BURST = 100
/** Of one round at least: as much else happens to a quick one as to a slow one. */
const ROUND_MS = 20
const BURST_ROUNDS = Math.ceil(ROUNDS / 10)
const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'

if (isMainThread) await serve()
else await call(workerData as number)

async function serve(): Promise<void> {
  const idle = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(idle, 'listening')
  const [plain, checked] = [await start({}), await start({ peers: createPeerCheck({ uid: process.getuid?.() ?? -1 }) })]
  const client = new Worker(new URL(import.meta.url), { workerData: (idle.address() as AddressInfo).port })
  await once(client, 'message') // the connections are open

  const turns = watchTurns()
  const order = async (message: Order) => {
    turns.reset()
    const over = sleep(ROUND_MS)
    client.postMessage(message)
    const [answerMs] = (await once(client, 'message')) as [number]
    await over
    return { turnMs: turns.longest(), answerMs }
  }
  /** In turns, so that a slow moment of the machine hits both. */
  const compare = async (count: number, rounds: number) => {
    const seen = { plain: [] as Sample[], checked: [] as Sample[] }
    for (let round = -rounds / 5; round < rounds; round++)
      for (const name of ['plain', 'checked'] as const) {
        const sample = await order({ port: name === 'plain' ? plain.port : checked.port, count })
        if (round >= 0) seen[name].push(sample)
      }
    return { plain: heldOf(seen.plain), checked: heldOf(seen.checked) }
  }
  const single = await compare(1, ROUNDS)
  const burst = await compare(BURST, BURST_ROUNDS)
  turns.stop()
  const result: NewConnections = {
    ...single,
    ...{ plainBurst: burst.plain, checkedBurst: burst.checked },
    syncReadMs: median(Array.from({ length: 20 }, syncRead)),
  }
  await client.terminate()
  for (const { server } of [plain, checked]) await server[Symbol.asyncDispose]()
  idle.close()
  console.log(JSON.stringify(result))
}

interface Sample {
  readonly turnMs: number
  readonly answerMs: number
}

function heldOf(samples: readonly Sample[]): Held {
  const turns = samples.map(({ turnMs }) => turnMs)
  return { turnMs: median(turns), worstTurnMs: Math.max(...turns), answerMs: median(samples.map(({ answerMs }) => answerMs)) }
}

async function start(options: Pick<HttpServerOptions, 'peers'>) {
  const server = createHttpServer({
    ...options,
    handler: (exchange) => sendText(exchange, 'hello'),
    onError: (error) => console.error(error),
  })
  return { server, port: (await server.listen({ host: '127.0.0.1', port: 0 })).port }
}

/** The event loop never sleeps meanwhile, so that the time between two looks is the time of what it did. */
function watchTurns() {
  let [last, longest, isOver] = [performance.now(), 0, false]
  const turn = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(turn)
  }
  turn()
  return {
    longest: () => longest,
    reset: () => {
      longest = 0
    },
    stop: () => {
      isOver = true
    },
  }
}

function syncRead(): number {
  const begin = performance.now()
  readFileSync('/proc/net/tcp', 'latin1')
  return performance.now() - begin
}

/** The other thread. */
async function call(idlePort: number): Promise<void> {
  const port = parentPort
  if (port === null) throw new TypeError('there is no main thread')
  const open: Socket[] = []
  while (open.length < OPEN) open.push(await opened(idlePort))
  port.on('message', async ({ port: server, count }: Order) => {
    const begin = performance.now()
    const answers = await Promise.all(Array.from({ length: count }, () => answerOf(server)))
    const wrong = answers.find((answer) => !answer.startsWith('HTTP/1.1 200 '))
    if (wrong !== undefined) throw new Error(`an answer is ${JSON.stringify(wrong.slice(0, 200))}`)
    port.postMessage(performance.now() - begin)
  })
  port.postMessage(open.length)
}

async function opened(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  await once(socket, 'connect')
  return socket.on('error', () => {})
}

async function answerOf(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.write(REQUEST)
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}
