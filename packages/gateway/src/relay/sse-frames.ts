import { ThvError } from '@thv/kernel/errors'
import { ByteAccumulator } from '@thv/mcp/byte-accumulator'

const LF_LF = Buffer.from('\n\n')
const LF_CRLF = Buffer.from('\n\r\n')
const CR_CR = Buffer.from('\r\r')
const CR = 0x0d
const LF = 0x0a
const COLON = 0x3a
const DATA = Buffer.from('data')
const NOTHING = Buffer.alloc(0)

/** Handling of a frame that grows over its limit: its pieces are passed on as they come, or the splitter gives up. */
export interface SplitterOptions {
  readonly maxHeldBytes: number
  readonly onLarge: 'pass' | 'fail'
}

/**
 * Cuts an event stream between its frames without decoding it, so that the relay can always stop at the end of one.
 * It returns whole frames, one or many; only a frame over the limit comes in pieces (`onLarge: 'pass'`).
 */
export class FrameSplitter {
  readonly #options: SplitterOptions
  readonly #held = new ByteAccumulator()
  /** The last bytes of the frame that has not ended yet: its end may be split between chunks. */
  #tail: Buffer = NOTHING
  /** The beginning of that frame has been given out. */
  #open = false

  constructor(options: SplitterOptions) {
    this.#options = options
  }

  /** False in the middle of a frame that is given out in pieces: then nothing else can be sent on this stream. */
  get atBoundary(): boolean {
    return !this.#open
  }

  /** The frames that can be passed on now; undefined if none can. Throws `message_too_large`. */
  push(chunk: Buffer): Buffer | undefined {
    // Mostly an event and nothing else.
    if (this.#tail.length === 0 && !this.#open && this.#held.length === 0 && endsWithBlankLine(chunk)) return chunk
    const searched = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk])
    const end = lastBoundary(searched) - this.#tail.length
    if (end <= 0) {
      this.#tail = searched.subarray(-2)
      return this.#grow(chunk)
    }
    const whole = this.#open ? chunk.subarray(0, end) : this.#held.take(chunk.subarray(0, end))
    const rest = chunk.subarray(end)
    this.#open = false
    this.#tail = rest.subarray(-2)
    const more = rest.length === 0 ? undefined : this.#grow(rest)
    return more === undefined ? whole : Buffer.concat([whole, more])
  }

  #grow(bytes: Buffer): Buffer | undefined {
    const { maxHeldBytes, onLarge } = this.#options
    if (this.#open) return bytes
    if (this.#held.length + bytes.length <= maxHeldBytes) {
      this.#held.append(bytes)
      return undefined
    }
    if (onLarge === 'fail') throw tooLarge(maxHeldBytes)
    this.#open = true
    return this.#held.take(bytes)
  }
}

function endsWithBlankLine(bytes: Buffer): boolean {
  return bytes.length > 1 && bytes[bytes.length - 1] === LF && bytes[bytes.length - 2] === LF
}

/** Index behind the last blank line, 0 if there is none. A blank line is one line end after another, each LF, CRLF or CR. */
function lastBoundary(bytes: Buffer): number {
  const lf = behind(bytes.lastIndexOf(LF_LF), 2)
  if (lf === bytes.length || bytes.indexOf(CR) === -1) return lf
  return Math.max(lf, behind(bytes.lastIndexOf(LF_CRLF), 3), behind(bytes.lastIndexOf(CR_CR), 2))
}

function behind(index: number, length: number): number {
  return index < 0 ? 0 : index + length
}

function tooLarge(limit: number): ThvError {
  return new ThvError('message_too_large', `an SSE event is over the limit of ${limit} bytes`, { details: { limit } })
}

const FRAME_END = /(?<=\n\n|\n\r\n|\r\r)/
const LINE_END = /\r\n|\n|\r/

/** Calls `edit` with the data of every event in whole frames. Frames whose data it gives back unchanged stay byte for byte. */
export function editFrames(frames: Buffer, edit: (data: string) => string): Buffer {
  const text = frames.toString('utf8')
  const edited = text
    .split(FRAME_END)
    .map((frame) => editFrame(frame, edit))
    .join('')
  return edited === text ? frames : Buffer.from(edited)
}

function editFrame(frame: string, edit: (data: string) => string): string {
  const lines = frame.split(LINE_END).filter((line) => line !== '')
  const data = dataOf(lines)
  if (data === undefined) return frame
  const edited = edit(data)
  if (edited === data) return frame
  const others = lines.filter((line) => !isDataLine(line))
  return `${[...others, ...edited.split('\n').map((line) => `data: ${line}`)].join('\n')}\n\n`
}

/** The data of every event in whole frames, in order. */
export function frameData(frames: Buffer): string[] {
  const all = frames
    .toString('utf8')
    .split(FRAME_END)
    .map((frame) => dataOf(frame.split(LINE_END)))
  return all.filter((data) => data !== undefined)
}

/**
 * The bytes of the data, where whole frames are one event with one line of data, as nearly all answers are. Undefined: anything else,
 * to be looked at by `frameData`.
 */
export function singleData(frames: Buffer): Buffer | undefined {
  const length = frames.length
  if (!endsWithBlankLine(frames) || frames.indexOf(LF_LF) !== length - 2 || frames.includes(CR)) return undefined
  // The first of its kind, so that no line before it is data: the bare word is a line of data too, an empty one.
  const at = frames.indexOf(DATA)
  const start = at + DATA.length + 1
  if (at < 0 || (at > 0 && frames[at - 1] !== LF) || frames[start - 1] !== COLON) return undefined
  // And the last line of all.
  const end = frames.indexOf(LF, start)
  if (end !== length - 2) return undefined
  return frames.subarray(frames[start] === 0x20 ? start + 1 : start, end)
}

function dataOf(lines: readonly string[]): string | undefined {
  const data = lines.filter(isDataLine).map((line) => line.slice(line.charCodeAt(5) === 0x20 ? 6 : 5))
  return data.length === 0 ? undefined : data.join('\n')
}

function isDataLine(line: string): boolean {
  return line.startsWith('data:') || line === 'data'
}
