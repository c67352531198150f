import { isThvError } from '@thv/kernel/errors'
import type { Call, Transport } from './transport.ts'
import { unreachable } from './unreachable.ts'

/** See `KubeClient.stream`. */
export async function* readStream(transport: Transport, makeCall: () => Call): AsyncGenerator<Uint8Array, void, undefined> {
  const call = makeCall()
  using stream = await transport.open(call)
  const { signal } = stream.scope
  try {
    for await (const chunk of stream.body) {
      signal.throwIfAborted()
      yield chunk as Uint8Array
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw isThvError(error) ? error : unreachable(call, stream.origin, error)
  }
}
