import { createBackoff } from '@thv/kernel/backoff'
import { formatDuration } from '@thv/kernel/duration'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { ImageProgram } from '../images/image-resolver.ts'
import type { ContainerRecord } from './container-record.ts'
import type { PodContext } from './pod-context.ts'
import type { ContainerSpec } from './pod-spec.ts'

/** Tries until the image is there; the record says how it stands. Rejects when the signal aborts only. */
export async function pullImage(
  spec: ContainerSpec,
  record: ContainerRecord,
  context: PodContext,
  signal: AbortSignal,
): Promise<ImageProgram> {
  const { env, event } = context
  const { backoffBase, backoffMax } = env.timings
  const backoff = createBackoff({ baseMs: backoffBase, maxMs: backoffMax, jitter: 0 })
  const image = spec.image ?? ''
  const isFirst = record.imageId === ''
  for (;;) {
    signal.throwIfAborted()
    const since = env.clock.monotonic()
    try {
      if (isFirst) event('Normal', 'Pulling', `Pulling image ${JSON.stringify(image)}`)
      const program = await env.images.resolve(image, signal)
      const took = formatDuration(Math.round(env.clock.monotonic() - since))
      const note = isFirst
        ? `Successfully pulled image ${JSON.stringify(image)} in ${took}`
        : `Container image ${JSON.stringify(image)} already present on machine`
      event('Normal', 'Pulled', note)
      record.imageId = program.imageId
      return program
    } catch (error) {
      signal.throwIfAborted()
      const text = isThvError(error) ? error.message : errorMessage(error)
      await failed(text, backoff.next())
    }
  }

  async function failed(text: string, delay: number): Promise<void> {
    const wait = (reason: string, message: string) => {
      record.state = { waiting: { reason, message } }
      event('Warning', 'Failed', `Error: ${reason}`)
      context.changed()
    }
    event('Warning', 'Failed', `Failed to pull image ${JSON.stringify(image)}: ${text}`)
    wait('ErrImagePull', text)
    const first = Math.min(1_000, delay / 2)
    await env.clock.sleep(first, signal)
    event('Normal', 'BackOff', `Back-off pulling image ${JSON.stringify(image)}`)
    wait('ImagePullBackOff', `Back-off pulling image ${JSON.stringify(image)}: ErrImagePull: ${text}`)
    await env.clock.sleep(delay - first, signal)
  }
}
