import type { Clock } from '@thv/kernel/clock'
import type { Json, JsonObject } from '@thv/kernel/json'

/** The services that a workflow needs of the program that runs it. The engine itself does no I/O. */
export interface WorkflowHost {
  readonly clock: Clock
  /** For the jitter of retries; Math.random unless given. */
  readonly random?: () => number
  /** Calls a backend's tool. A rejection and a result with `isError` both fail the step. */
  callTool(call: ToolCall, signal: AbortSignal): Promise<ToolResult>
  /** Asks the user and waits for the answer. Absent if the client cannot be asked: then the step fails. */
  elicit?(question: Question, signal: AbortSignal): Promise<Answer>
  /** Input schema of a tool, hidden ones too. Arguments are converted to the types that it asks for. */
  inputSchema?(tool: string): JsonObject | undefined
  /** After each step: how many of all are done. */
  progress?(done: number, total: number): void
  /** Told the events of a run, in order. It must not throw. A run that goes on after a question does not start again. */
  observe?(event: WorkflowEvent): void
}

export interface WorkflowEvent {
  readonly type:
    | 'workflow_started'
    | 'workflow_completed'
    | 'workflow_failed'
    | 'workflow_timed_out'
    | 'workflow_step_started'
    | 'workflow_step_completed'
    | 'workflow_step_failed'
    | 'workflow_step_skipped'
  /** `.workflow.id`. */
  readonly id: string
  readonly step?: string
  /** Of an end, since the start in this process. */
  readonly durationMs?: number
  /** Of a failure. */
  readonly error?: string
}

export interface ToolCall {
  /** For logs: clients see no step names. */
  readonly step: string
  /** As the definition names it. */
  readonly tool: string
  readonly arguments: JsonObject
  /** Counts from 1. */
  readonly attempt: number
  /** Position in a loop. */
  readonly iteration?: number
}

/** The result of `tools/call`. */
export interface ToolResult {
  readonly content: readonly JsonObject[]
  readonly structuredContent?: JsonObject
  readonly isError?: boolean
}

export interface Question {
  readonly step: string
  readonly message: string
  readonly schema: JsonObject
}

export interface Answer {
  readonly action: 'accept' | 'decline' | 'cancel'
  readonly content?: JsonObject
}

/** The result of a step. Plain JSON, so that a workflow can be put aside. */
export interface StepResult {
  readonly status: 'completed' | 'failed' | 'skipped'
  readonly output: Json
  /** Of the tool, for a workflow without `output`. */
  readonly content?: readonly JsonObject[]
  readonly structuredContent?: JsonObject
  readonly error?: string
}
