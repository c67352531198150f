import type { JsonObject } from '@thv/kernel/json'
import type { Question, StepResult, ToolResult } from './workflow-host.ts'

export type WorkflowOutcome =
  | { readonly kind: 'completed'; readonly result: ToolResult }
  /** The parameters do not fit; nothing ran. */
  | { readonly kind: 'invalid_params'; readonly problems: readonly string[] }
  | {
      readonly kind: 'failed'
      /** For logs: the step that failed, if one did. */
      readonly step?: string
      /** Names no step and no backend. */
      readonly message: string
      readonly result: ToolResult
    }
  | { readonly kind: 'suspended'; readonly state: SuspendedWorkflow; readonly questions: readonly Question[] }

/** Everything a workflow needs to go on. Plain JSON of at most 1 MiB. */
export interface SuspendedWorkflow {
  readonly id: string
  readonly params: JsonObject
  readonly results: Readonly<Record<string, StepResult>>
  readonly lastStep: string | undefined
  readonly startedAt: number
  readonly askedAt: number
  /** Time that counts for the limit of the workflow: that of the user does not. */
  readonly elapsedMs: number
  readonly questions: readonly string[]
}

/** Of all results of a run, and of all items of a loop, in characters of JSON. */
export const MAX_OUTPUTS_LENGTH = 16 * 1024 * 1024
export const OUTPUTS_TOO_LARGE = 'the results of the steps are larger than 16 MiB'

export function failed(message: string, step?: string): WorkflowOutcome {
  const text = `Workflow execution failed: ${message}`
  return {
    kind: 'failed',
    message,
    result: { content: [{ type: 'text', text }], isError: true },
    ...(step !== undefined && { step }),
  }
}
