import type { Rejection } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { Hop } from '@thv/middleware/pipeline/request-context'
import { RejectedError } from '../response/rejected-error.ts'

/** Runs `prepare` for a hop. Throws RejectedError. Makes no promise where the middleware make none. */
export function prepareHop(pipeline: Pipeline, hop: Hop): Promise<void> | undefined {
  const prepared = pipeline.prepare(hop)
  if (prepared instanceof Promise) return prepared.then(throwIfRejected)
  throwIfRejected(prepared)
  return undefined
}

function throwIfRejected(rejection: Rejection | undefined): void {
  if (rejection !== undefined) throw new RejectedError(rejection)
}
