import { connect, type Socket } from 'node:net'
import { type HttpAnswer, parseAnswers } from './http-answers.ts'

/** Bytes for one connection, and how they are sent. */
export interface Transmission {
  readonly pieces: readonly Buffer[]
  /** Answers that a server gives when all of it is in order. */
  readonly expected: number
  readonly isHead: boolean
  /**
   * `stay` until it is answered. `wait` the same, but after a while say that no more will come. `half`: say so at once. `cut`: go away
   * without waiting.
   */
  readonly manner: 'stay' | 'wait' | 'half' | 'cut'
}

export interface Exchange {
  readonly outcome: 'answered' | 'closed' | 'left' | 'hung'
  readonly answers: readonly HttpAnswer[]
  readonly garbage: string | undefined
}

export interface RawLimits {
  /** After this long without an answer the client says that it has nothing more to send. */
  readonly patienceMs: number
  /** And after this long the server hangs. */
  readonly hangMs: number
}

/** Sends bytes over a connection of their own, and tells what became of it. Never rejects on what the server does. */
export function exchangeRaw(port: number, transmission: Transmission, limits: RawLimits): Promise<Exchange> {
  return new Promise((resolve) => {
    const { pieces, expected, isHead, manner } = transmission
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const received: Buffer[] = []
    const parse = () => parseAnswers(Buffer.concat(received), isHead)
    const finish = (outcome: Exchange['outcome']) => {
      clearTimeout(patience)
      clearTimeout(hang)
      socket.removeAllListeners()
      socket.on('error', () => {}) // a reset that is still on its way
      socket.resetAndDestroy()
      resolve({ outcome, ...parse() })
    }
    const patience = manner === 'wait' ? setTimeout(() => socket.end(), limits.patienceMs) : undefined
    const hang = setTimeout(() => finish('hung'), limits.hangMs)
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk)
      const { answers, garbage } = parse()
      const last = answers.at(-1)
      const isStream = last?.headers.get('content-type')?.startsWith('text/event-stream') === true && !last.complete
      // A stream that has begun is an answer: how long it goes on is for both sides to say.
      if (garbage !== undefined || isStream || answers.filter(({ complete }) => complete).length >= expected) finish('answered')
    })
    socket.on('end', () => finish(received.length > 0 ? 'answered' : 'closed'))
    socket.on('error', () => finish(received.length > 0 ? 'answered' : 'closed'))
    socket.on('close', () => finish(received.length > 0 ? 'answered' : 'closed'))
    socket.on('connect', () => {
      void send(socket, pieces).then(() => {
        if (manner === 'half') socket.end()
        if (manner === 'cut') finish('left')
      })
    })
  })
}

/** Each piece in a turn of its own, so that it mostly arrives as one. */
async function send(socket: Socket, pieces: readonly Buffer[]): Promise<void> {
  socket.setNoDelay(true)
  for (const piece of pieces) {
    if (socket.destroyed || socket.writableEnded) return
    socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
