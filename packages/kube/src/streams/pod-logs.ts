import type { KubeClient } from '../client/client.ts'
import { objectPath } from '../client/paths.ts'
import { pods } from '../objects/resource-types.ts'

export interface PodLogsOptions {
  readonly namespace: string
  readonly pod: string
  /** Needed when the pod has several. */
  readonly container?: string | undefined
  /** Goes on until the container ends. */
  readonly follow?: boolean | undefined
  readonly tailLines?: number | undefined
  readonly sinceSeconds?: number | undefined
  /** Of the instance before the last restart. */
  readonly previous?: boolean | undefined
  readonly timestamps?: boolean | undefined
  readonly limitBytes?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Until the first byte may come. Default 30 s. */
  readonly timeoutMs?: number | undefined
}

/** Output of a container, as bytes. It ends when the server has no more; `kube_unreachable` when the connection breaks. */
export function podLogs(client: Pick<KubeClient, 'stream'>, options: PodLogsOptions): AsyncIterable<Uint8Array> {
  const { namespace, pod, signal, timeoutMs, container, follow, tailLines, sinceSeconds, previous, timestamps, limitBytes } = options
  return client.stream(objectPath(pods, { namespace, name: pod }, 'log'), {
    query: { container, follow, tailLines, sinceSeconds, previous, timestamps, limitBytes },
    signal,
    timeoutMs,
  })
}

const MAX_LINE_BYTES = 64 << 10

/** The same by lines, without their ends. A line over the limit is cut there and marked; the rest of it is not kept in memory. */
export async function* podLogLines(
  client: Pick<KubeClient, 'stream'>,
  options: PodLogsOptions & { readonly maxLineBytes?: number | undefined },
): AsyncGenerator<string, void, undefined> {
  const line = createLine(options.maxLineBytes ?? MAX_LINE_BYTES)
  for await (const chunk of podLogs(client, options)) {
    let start = 0
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      line.add(chunk.subarray(start, end))
      yield line.take()
      start = end + 1
    }
    line.add(chunk.subarray(start))
  }
  if (!line.isEmpty) yield line.take()
}

function createLine(limit: number) {
  let parts: Uint8Array[] = []
  let size = 0
  return {
    get isEmpty() {
      return size === 0
    },
    add(bytes: Uint8Array): void {
      // A copy: a chunk of which one short piece is held would stay in memory whole.
      if (size < limit && bytes.length > 0) parts.push(Uint8Array.from(bytes.subarray(0, limit - size)))
      size += bytes.length
    },
    take(): string {
      // A stream decoder drops a character that was cut in two at the end, instead of marking it.
      const text = new TextDecoder().decode(Buffer.concat(parts), { stream: size > limit })
      const taken = size > limit ? `${text}…` : text
      parts = []
      size = 0
      return taken.endsWith('\r') ? taken.slice(0, -1) : taken
    },
  }
}
