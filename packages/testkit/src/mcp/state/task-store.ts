import { randomUUID } from 'node:crypto'
import { INVALID_PARAMS, isObject, type JsonObject, RpcError, type RpcErrorBody } from '../wire/json-rpc.ts'
import type { ChangeBus } from './changes.ts'

const TTL_MS = 300_000
const POLL_MS = 100
const MAX_TASKS = 1_000

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** One long-running call of the tasks extension. */
export class Task {
  readonly id = randomUUID()
  readonly abort = new AbortController()
  readonly #created = new Date().toISOString()
  readonly #changes: ChangeBus
  readonly #waiting = new Map<string, { request: JsonObject; answer: PromiseWithResolvers<JsonObject> }>()
  #updated = this.#created
  #status: TaskStatus = 'working'
  #outcome: { result: JsonObject } | { error: RpcErrorBody } | undefined
  #asked = 0

  constructor(changes: ChangeBus) {
    this.#changes = changes
  }

  /** The flat shape of a creation result. */
  summary(): JsonObject {
    return {
      taskId: this.id,
      status: this.#status,
      createdAt: this.#created,
      lastUpdatedAt: this.#updated,
      ttlMs: TTL_MS,
      pollIntervalMs: POLL_MS,
    }
  }

  /** The shape of `tasks/get` and `notifications/tasks`. */
  detail(): JsonObject {
    const inputRequests = Object.fromEntries([...this.#waiting].map(([key, { request }]) => [key, request]))
    return { ...this.summary(), ...this.#outcome, ...(this.#status === 'input_required' ? { inputRequests } : {}) }
  }

  /** Resolves when `tasks/update` has brought an answer. Keys are never used twice in the life of a task. */
  async ask(request: JsonObject): Promise<JsonObject> {
    if (this.settled) throw new Error('the task has ended')
    this.#asked += 1
    const answer = Promise.withResolvers<JsonObject>()
    this.#waiting.set(`input-${this.#asked}`, { request, answer })
    this.#move('input_required')
    return answer.promise
  }

  /** Unknown keys and answers that are no objects are ignored. */
  answer(responses: JsonObject): void {
    for (const [key, response] of Object.entries(responses)) {
      const waiting = this.#waiting.get(key)
      if (!waiting || !isObject(response)) continue
      this.#waiting.delete(key)
      waiting.answer.resolve(response)
    }
    if (this.#status === 'input_required' && this.#waiting.size === 0) this.#move('working')
  }

  complete(result: JsonObject): void {
    this.#settle('completed', { result })
  }

  fail(error: RpcErrorBody): void {
    this.#settle('failed', { error })
  }

  cancel(): void {
    this.#settle('cancelled', undefined)
    this.abort.abort(new Error('task cancelled'))
  }

  get settled(): boolean {
    return this.#status === 'completed' || this.#status === 'failed' || this.#status === 'cancelled'
  }

  #settle(status: TaskStatus, outcome: { result: JsonObject } | { error: RpcErrorBody } | undefined): void {
    if (this.settled) return
    for (const { answer } of this.#waiting.values()) answer.reject(new Error('the task has ended'))
    this.#waiting.clear()
    this.#outcome = outcome
    this.#move(status)
  }

  #move(status: TaskStatus): void {
    this.#status = status
    this.#updated = new Date().toISOString()
    this.#changes.emit({ kind: 'task', taskId: this.id, task: this.detail() })
  }
}

export interface TaskStore {
  create(): Task
  /** Throws -32602 for an unknown id. */
  get(taskId: unknown): Task
  close(): void
}

/** The oldest tasks go first when there are too many; the promised lifetime is far longer than any test. */
export function createTaskStore(changes: ChangeBus): TaskStore {
  const tasks = new Map<string, Task>()
  return {
    create: () => {
      const task = new Task(changes)
      tasks.set(task.id, task)
      const [oldest] = tasks.keys()
      if (tasks.size > MAX_TASKS && oldest !== undefined) tasks.delete(oldest)
      return task
    },
    get: (taskId) => {
      const task = typeof taskId === 'string' ? tasks.get(taskId) : undefined
      if (!task) throw new RpcError(INVALID_PARAMS, 'Unknown task')
      return task
    },
    close: () => {
      for (const task of tasks.values()) task.cancel()
      tasks.clear()
    },
  }
}
