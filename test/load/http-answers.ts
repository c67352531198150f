/** One answer as it came over the wire. */
export interface HttpAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** False for a stream that was left while it was still open, or an answer that was cut off. */
  readonly complete: boolean
}

export interface ParsedAnswers {
  readonly answers: HttpAnswer[]
  /** The bytes that are no HTTP answer. Undefined when all of them are. */
  readonly garbage: string | undefined
}

const HEAD_END = Buffer.from('\r\n\r\n')

/**
 * Reads as many answers as there are. Written for tests: it reads all bytes again each time. `isHead`: answers to HEAD have no body;
 * but what could not be read as a request was no HEAD either, so a body is taken where one follows.
 */
export function parseAnswers(bytes: Buffer, isHead: boolean): ParsedAnswers {
  const answers: HttpAnswer[] = []
  let at = 0
  while (at < bytes.length) {
    const headEnd = bytes.indexOf(HEAD_END, at)
    if (headEnd < 0) return { answers, garbage: startsLikeHttp(bytes.subarray(at)) ? undefined : preview(bytes, at) }
    const [statusLine = '', ...lines] = bytes.toString('latin1', at, headEnd).split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
    if (Number.isNaN(status)) return { answers, garbage: preview(bytes, at) }
    const headers = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]))
    const bodyAt = headEnd + HEAD_END.length
    if (status < 200) {
      at = bodyAt
      continue
    }
    const hasNoBody = status === 204 || status === 304 || (isHead && startsLikeHttp(bytes.subarray(bodyAt)))
    const { body, end, complete } = hasNoBody ? { body: Buffer.alloc(0), end: bodyAt, complete: true } : bodyOf(bytes, bodyAt, headers)
    answers.push({ status, headers, body, complete })
    if (!complete) break
    at = end
  }
  return { answers, garbage: undefined }
}

interface Body {
  readonly body: Buffer
  readonly end: number
  readonly complete: boolean
}

function bodyOf(bytes: Buffer, at: number, headers: ReadonlyMap<string, string>): Body {
  const length = headers.get('content-length')
  if (length !== undefined) {
    const end = at + Number(length)
    return { body: bytes.subarray(at, end), end, complete: end <= bytes.length }
  }
  if (headers.get('transfer-encoding') === 'chunked') return chunkedBody(bytes, at)
  return { body: bytes.subarray(at), end: bytes.length, complete: false }
}

function chunkedBody(bytes: Buffer, start: number): Body {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const from = lineEnd + 2
    if (Number.isNaN(size) || from + size + 2 > bytes.length) return { body: Buffer.concat(chunks), end: bytes.length, complete: false }
    if (size === 0) return { body: Buffer.concat(chunks), end: from + 2, complete: true }
    chunks.push(bytes.subarray(from, from + size))
    at = from + size + 2
  }
}

/** Also where nothing has come yet. */
function startsLikeHttp(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, 9)
  return 'HTTP/1.1 '.startsWith(start)
}

function preview(bytes: Buffer, at: number): string {
  return bytes.toString('latin1', at, at + 200)
}
