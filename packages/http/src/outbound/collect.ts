import type { HeaderMap, MutableHeaderMap } from '../header-map.ts'
import type { Target } from './outbound.ts'
import type { OutboundRequest, ResponseSink } from './outbound-call.ts'

export interface CollectedResponse {
  readonly status: number
  readonly headers: HeaderMap
  readonly body: Buffer
}

/** Sends a request and reads the whole answer, for probes and for small documents such as keys and tokens. */
export async function collect(
  target: Target,
  request: OutboundRequest & { readonly maxResponseBytes: number },
): Promise<CollectedResponse> {
  const sink = new CollectingSink()
  await target.send(request, sink)
  return { status: sink.status, headers: sink.headers, body: Buffer.concat(sink.chunks) }
}

class CollectingSink implements ResponseSink {
  status = 0
  headers: MutableHeaderMap = {}
  readonly chunks: Buffer[] = []

  start(status: number, headers: MutableHeaderMap): void {
    this.status = status
    this.headers = headers
  }

  data(chunk: Buffer): void {
    this.chunks.push(chunk)
  }

  end(): void {}
}
