/** A request before it becomes bytes, so that mutations can get at its parts. */
export interface FuzzRequest {
  method: string
  path: string
  version: string
  /** In order, as written; a name may come more than once. Length and framing are added last. */
  headers: (readonly [name: string, value: string])[]
  body: Buffer | undefined
  framing: 'length' | 'chunked' | 'none'
}

/** Latin-1, as HTTP heads are: a header value with bytes above 0x7f holds them one by one. */
export function headOf({ method, path, version, headers, body, framing }: FuzzRequest): Buffer {
  const framed = body === undefined || framing === 'none' ? [] : [framingHeader(body, framing)]
  const lines = [`${method} ${path} ${version}`, ...[...headers, ...framed].map(([name, value]) => `${name}: ${value}`)]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

function framingHeader(body: Buffer, framing: 'length' | 'chunked'): readonly [string, string] {
  return framing === 'length' ? ['Content-Length', String(body.length)] : ['Transfer-Encoding', 'chunked']
}

export function bytesOf(request: FuzzRequest): Buffer {
  const { body = Buffer.alloc(0), framing } = request
  const head = headOf(request)
  if (framing !== 'chunked' || request.body === undefined) return Buffer.concat([head, body])
  const half = body.length >> 1
  const chunks = [body.subarray(0, half), body.subarray(half)].filter((chunk) => chunk.length > 0)
  const framed = chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])
  return Buffer.concat([head, ...framed, Buffer.from('0\r\n\r\n')])
}

/** Tuples are replaced, never changed: seeds share theirs. */
export function setHeader(request: FuzzRequest, name: string, value: string): void {
  const isIt = ([known]: readonly [string, string]) => known.toLowerCase() === name.toLowerCase()
  if (request.headers.some(isIt)) request.headers = request.headers.map((header) => (isIt(header) ? [header[0], value] : header))
  else request.headers.push([name, value])
}

export function removeHeader(request: FuzzRequest, name: string): void {
  request.headers = request.headers.filter(([known]) => known.toLowerCase() !== name.toLowerCase())
}
