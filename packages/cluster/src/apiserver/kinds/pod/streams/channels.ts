import { once } from 'node:events'
import type WebSocket from 'ws'
import type { AttachedContainer } from '../pod-streams.ts'

/** In the order in which they are preferred. A frame is one byte that names the channel, and the bytes. */
export const ATTACH_PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const

const [STDIN, STDOUT, STDERR, STATUS] = [0, 1, 2, 3]
/** The second byte names the channel that ends. What v5 adds over v4: the end of stdin. */
const CLOSE = 255
/** The kubelet itself sends at most this much at a time. */
const MAX_FRAME = 32 << 10
/** Above this much that the client has not taken yet the container has to wait. */
const MAX_UNSENT = 64 << 10
const NORMAL = 1000
/** For the client to answer our close. */
const CLOSE_GRACE_MS = 2_000

export interface ChannelOptions {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
  /** The text of the Status that tells of a failure. */
  readonly failed: (error: unknown) => string
}

/** Passes everything on in both directions, no faster than the other side takes it; resolves when the client or the container has ended. */
export async function serveChannels(socket: WebSocket, container: AttachedContainer, options: ChannelOptions): Promise<void> {
  const closed = once(socket, 'close').then(
    () => undefined,
    () => undefined, // a broken connection is closed as well
  )
  socket.on('error', () => undefined) // 'close' follows
  const input = readInput(socket, container, options)
  await send(socket, frame(options.stdout ? STDOUT : options.stderr ? STDERR : STATUS, new Uint8Array())) // says that it is open
  const ended = await Promise.race([closed.then(() => 'gone' as const), sendOutput(socket, container, options)])
  input.stop()
  if (ended === 'gone') return
  await send(socket, frame(STATUS, Buffer.from(ended)))
  socket.resume() // or the client's answer is never read
  socket.close(NORMAL)
  const grace = setTimeout(() => socket.terminate(), CLOSE_GRACE_MS)
  await closed
  clearTimeout(grace)
}

const SUCCESS = JSON.stringify({ metadata: {}, status: 'Success' })

/** Resolves with the text of the final Status. */
async function sendOutput(socket: WebSocket, container: AttachedContainer, options: ChannelOptions): Promise<string> {
  try {
    for await (const { stream, bytes } of container.output) {
      if (options.signal.aborted || socket.readyState !== socket.OPEN) return SUCCESS
      if (!options[stream]) continue
      for (let start = 0; start < bytes.length; start += MAX_FRAME)
        await send(socket, frame(stream === 'stdout' ? STDOUT : STDERR, bytes.subarray(start, start + MAX_FRAME)))
    }
    return SUCCESS
  } catch (error) {
    return options.failed(error)
  }
}

/** Frames that have come already wait for those before them; the connection is not read meanwhile. */
function readInput(socket: WebSocket, container: AttachedContainer, { stdin }: ChannelOptions): { stop(): void } {
  let pending = 0
  let last: Promise<void> = Promise.resolve()
  let isOver = !stdin
  const run = (step: () => void | Promise<void>) => {
    pending++
    socket.pause()
    last = last
      .then(() => (isOver ? undefined : step()))
      .catch(() => {
        isOver = true // the container takes no more; its end tells the client
      })
      .finally(() => {
        if (--pending === 0 && socket.readyState === socket.OPEN) socket.resume()
      })
  }
  socket.on('message', (data: Buffer) => {
    if (isOver) return
    const bytes = data.subarray(1)
    // Others are not for us: 4 is the size of a terminal.
    if (data[0] === STDIN && bytes.length > 0) run(() => container.write(bytes))
    else if (data[0] === CLOSE && bytes[0] === STDIN)
      run(() => {
        isOver = true
        container.endInput()
      })
  })
  return {
    stop() {
      isOver = true
    },
  }
}

function frame(channel: number, bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(bytes.length + 1)
  whole[0] = channel
  whole.set(bytes, 1)
  return whole
}

/** Resolves when there is room for more, also when the client is gone: its end is reported elsewhere. */
function send(socket: WebSocket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const isCrowded = socket.bufferedAmount + bytes.length > MAX_UNSENT
    socket.send(bytes, () => resolve())
    if (!isCrowded) resolve()
  })
}
