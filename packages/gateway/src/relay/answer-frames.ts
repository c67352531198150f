import { OutboundError } from '@thv/http/outbound/outbound-error'
import type { RequestId } from '@thv/mcp/json-rpc'
import { bytesKind, mayHoldRequest, mayHoldResponse, mayHoldResult, responseKind } from './response-check.ts'
import { editFrames, FrameSplitter, frameData, type SplitterOptions, singleData } from './sse-frames.ts'

const EVENT_ID = Buffer.from('\nid:')

/**
 * The events of an answer on their way to the client. They pass as they are, whole; what passes is looked at only as far as it takes to
 * know, at the end, whether the call was answered.
 */
export class AnswerFrames {
  /** The response to the call has passed. */
  answered = false
  /** The events have ids: their client may come back for the rest. */
  resumable = false
  /** The backend asks its user something. */
  hasQuestion = false
  readonly #splitter: FrameSplitter
  readonly #id: RequestId | undefined

  /** `id` is that of the call; undefined where nothing is to be answered. */
  constructor(id: RequestId | undefined, options: SplitterOptions) {
    this.#id = id
    this.#splitter = new FrameSplitter(options)
  }

  /** False in the middle of a frame that is passed on in pieces: then nothing else can be sent on this stream. */
  get atBoundary(): boolean {
    return this.#splitter.atBoundary
  }

  /** The frames that can be passed on now; undefined if none can. */
  push(chunk: Buffer): Buffer | undefined {
    const frames = this.#splitter.push(chunk)
    if (frames !== undefined && this.#id !== undefined && !this.answered) this.#look(frames, this.#id)
    return frames
  }

  #look(frames: Buffer, id: RequestId): void {
    const data = singleData(frames)
    if (data !== undefined && bytesKind(data, id) === 'ours') {
      this.answered = true
      return
    }
    this.resumable ||= frames.includes(EVENT_ID) || frames.toString('latin1', 0, 3) === 'id:'
    if (!mayHoldResponse(frames)) this.hasQuestion ||= mayHoldRequest(frames)
    // A frame in pieces is taken for the answer: nothing else is that large.
    else this.answered = !this.#splitter.atBoundary || frameData(frames).some((text) => responseKind(text, id) === 'ours')
  }
}

/** Whole frames with the responses in them edited. One under another id is edited too, so that no unedited response gets out. */
export function editedFrames(frames: Buffer, edit: (text: string) => string): Buffer {
  return mayHoldResult(frames) ? editFrames(frames, (data) => editedData(data, edit)) : frames
}

/** As `editedData`, for a whole body. */
export function editedBody(body: Buffer, edit: (text: string) => string): Buffer {
  if (!mayHoldResult(body)) return body
  const text = body.toString('utf8')
  const edited = editedData(text, edit)
  return edited === text ? body : Buffer.from(edited)
}

/**
 * The data of one event, edited where it has a result, whatever else is wrong with it. A batch, and what only lenient parsers take for JSON,
 * cannot be edited: it could hold a list. Throws OutboundError.
 */
export function editedData(data: string, edit: (text: string) => string): string {
  if (!mayHoldResult(data)) return data
  try {
    if (!data.trimStart().startsWith('[')) return edit(data)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new OutboundError('backend_protocol', 'the backend sent a result that cannot be checked', { sent: true, answered: true })
}
