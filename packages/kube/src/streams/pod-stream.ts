import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type WebSocket from 'ws'
import { ByteQueue } from '../client/byte-queue.ts'
import type { Connection } from '../client/connection.ts'
import { malformed } from '../client/response-body.ts'
import { unreachable } from '../client/unreachable.ts'
import type { KubeStatus } from '../objects/types.ts'
import { CLOSE, exitCodeOf, parseStatusFrame, STATUS, STDERR, STDIN_END, STDOUT, stdinFrames } from './channel-frame.ts'
import { keepAlive } from './keep-alive.ts'
import { openChannel } from './open-channel.ts'

export interface PodStreamOptions {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  /** `attach` joins the program that runs; `exec` starts one beside it. */
  readonly kind: 'attach' | 'exec'
  /** For `exec`. */
  readonly command?: readonly string[] | undefined
  readonly stdin?: boolean | undefined
  readonly stdout?: boolean | undefined
  /** A caller that asks for it must read it: two streams share one connection, and an unread one stops the other. */
  readonly stderr?: boolean | undefined
  readonly tty?: boolean | undefined
  /** Ends the stream at any time. */
  readonly signal?: AbortSignal | undefined
  /** Default 30 s. */
  readonly openTimeoutMs?: number | undefined
  readonly clock?: Clock | undefined
  /** Bytes that may wait for their reader before the connection is paused. Default 1 MiB. */
  readonly maxBufferedBytes?: number | undefined
  /** Default 15 s. */
  readonly pingIntervalMs?: number | undefined
  /** Without any sign of life for so long the connection counts as broken. Default 60 s. */
  readonly silenceLimitMs?: number | undefined
  /** Of one frame. Default 64 MiB. */
  readonly maxPayload?: number | undefined
}

export interface PodStream {
  /** Resolves when there is room for more: waiting for it is how a slow program slows its writer. Rejects with `stream_closed`. */
  write(bytes: Uint8Array | string): Promise<void>
  /** End of input. An attached program reads it only if it was started with `stdinOnce`. */
  closeStdin(): Promise<void>
  /** End with the stream, also with a broken one: `done` tells which. */
  readonly stdout: AsyncIterable<Buffer>
  readonly stderr: AsyncIterable<Buffer>
  /** Never rejects. What has come before can still be read. */
  readonly done: Promise<PodStreamEnd>
  /** Detaches; an attached program goes on. */
  close(): void
}

export interface PodStreamEnd {
  /** As the server said it. A `Success` of attach says nothing about the pod: it comes when the pod is deleted, too. */
  readonly status: KubeStatus | undefined
  /** Of the program, when the status tells it. */
  readonly exitCode: number | undefined
  /** `kube_unreachable` for a connection that broke, `aborted` or the signal's reason for one that was closed here. */
  readonly error: unknown
}

const MAX_BUFFERED = 1 << 20
/** Below this much in the socket a write need not wait. */
const WRITE_ROOM = 64 << 10

/**
 * The standard streams of a container over one WebSocket. Throws KubeApiError with the server's status and message when the handshake
 * is refused, `kube_unreachable` when there is no connection.
 */
export async function openPodStream(connection: Connection, options: PodStreamOptions): Promise<PodStream> {
  const { clock = systemClock, signal, maxBufferedBytes = MAX_BUFFERED, silenceLimitMs = 60_000 } = options
  const { socket, call, origin } = await openChannel(connection, { ...options, clock })
  const ended = Promise.withResolvers<PodStreamEnd>()
  let status: KubeStatus | undefined
  let failure: unknown
  let stdinClosed = options.stdin !== true
  let closing = false

  const stdout = new ByteQueue(checkRoom)
  const stderr = new ByteQueue(checkRoom)
  const heart = keepAlive(socket, {
    clock,
    intervalMs: options.pingIntervalMs ?? 15_000,
    limitMs: silenceLimitMs,
    onDead: () => fail(unreachable(call, origin, new Error(`nothing was heard for ${silenceLimitMs} ms`))),
  })

  /** Pongs are not read from a paused socket either, so its silence means nothing. */
  function checkRoom(): void {
    const isFull = !closing && stdout.size + stderr.size > maxBufferedBytes
    if (isFull && !socket.isPaused) {
      socket.pause()
      heart.suspend()
    } else if (!isFull && socket.isPaused) {
      socket.resume()
      heart.resume()
    }
  }

  function fail(error: unknown): void {
    failure ??= error
    socket.terminate()
  }

  function receive(data: WebSocket.RawData, isBinary: boolean): void {
    heart.beat()
    const [channel, bytes] = isBinary && Buffer.isBuffer(data) ? [data[0], data.subarray(1)] : [undefined, undefined]
    if (bytes === undefined || channel === undefined) fail(malformed(call, 'a frame of another protocol'))
    else if (channel === STDOUT) stdout.push(bytes)
    else if (channel === STDERR) stderr.push(bytes)
    else if (channel === CLOSE) closeChannel(bytes[0])
    else if (channel === STATUS) status = parseStatusFrame(bytes) ?? status
    else fail(malformed(call, `a frame of channel ${channel}`))
    checkRoom()
  }

  function closeChannel(channel: number | undefined): void {
    if (channel === STDOUT) stdout.end()
    if (channel === STDERR) stderr.end()
  }

  function finish(code: number): void {
    heart.stop()
    signal?.removeEventListener('abort', onAbort)
    if (failure === undefined && status === undefined && code !== NORMAL) {
      failure = unreachable(call, origin, new Error(`the connection ended with ${code} and no status`))
    }
    stdinClosed = true
    stdout.end()
    stderr.end()
    ended.resolve({ status, exitCode: status && exitCodeOf(status), error: failure })
  }

  const onAbort = () => fail(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  socket.on('message', receive)
  socket.on('pong', () => heart.beat())
  socket.on('ping', () => heart.beat())
  socket.on('error', (error) => {
    failure ??= unreachable(call, origin, error)
  })
  socket.on('close', finish)
  if (signal?.aborted) onAbort()
  socket.resume() // openChannel paused it, so that nothing is missed

  return {
    stdout,
    stderr,
    done: ended.promise,

    async write(bytes) {
      if (stdinClosed) throw new ThvError('stream_closed', `${call.verb} ${call.target}: its standard input is closed`)
      let last: Buffer | undefined
      for (const frame of stdinFrames(typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes)) {
        if (last !== undefined) socket.send(last, LOST)
        last = frame
      }
      if (last === undefined) return
      if (socket.bufferedAmount + last.length > WRITE_ROOM) await send(last)
      else socket.send(last, LOST)
    },

    async closeStdin() {
      if (stdinClosed) return
      stdinClosed = true
      await send(STDIN_END)
    },

    close() {
      if (failure !== undefined || socket.readyState !== socket.OPEN) return
      failure = new ThvError('aborted', `${call.verb} ${call.target}: closed`)
      closing = true
      heart.stop()
      stdout.end()
      stderr.end()
      checkRoom()
      socket.close(NORMAL)
      const grace = clock.setTimer(CLOSE_GRACE_MS, () => socket.terminate())
      void ended.promise.then(() => grace.cancel())
    },
  }

  function send(frame: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      socket.send(frame, (error) => {
        if (error) reject(new ThvError('stream_closed', `${call.verb} ${call.target}: the connection is gone`, { cause: error }))
        else resolve()
      })
    })
  }
}

/** A frame that is not awaited: when it is lost the connection is gone, and `done` says so. */
const LOST = () => {}
const NORMAL = 1000
/** For the other side to answer our close. */
const CLOSE_GRACE_MS = 2_000
