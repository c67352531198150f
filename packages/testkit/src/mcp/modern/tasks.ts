import { type Call, type Channel, MissingCapability, type Tool } from '../features/call.ts'
import { demandDeclared } from '../features/input-requests.ts'
import type { Task } from '../state/task-store.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, isObject, type JsonObject, RpcError } from '../wire/json-rpc.ts'
import { TASKS_EXTENSION } from '../wire/protocol.ts'

export const TASK_METHODS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])

export function hasTasks(capabilities: JsonObject): boolean {
  const extensions = capabilities['extensions']
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION])
}

export function demandTasks(capabilities: JsonObject): void {
  if (!hasTasks(capabilities)) throw new MissingCapability({ extensions: { [TASKS_EXTENSION]: {} } })
}

/** Gathers what the tool needs, then lets it run behind a task. The task exists before the client learns its id. */
export async function startTask(tool: Tool, call: Call): Promise<JsonObject> {
  const prepared = (await tool.prepare?.(call)) ?? {}
  const task = call.world.tasks.create()
  void runTask(task, tool, { ...behindTask(call, task), args: { ...call.args, ...prepared } })
  return { resultType: 'task', ...task.summary() }
}

export function answerTaskMethod(method: string, call: Call): JsonObject {
  demandTasks(call.origin.clientCapabilities)
  const task = call.world.tasks.get(call.params['taskId'])
  if (method === 'tasks/get') return task.detail()
  if (method === 'tasks/cancel') {
    task.cancel()
    return {}
  }
  const responses = call.params['inputResponses']
  if (!isObject(responses)) throw new RpcError(INVALID_PARAMS, 'inputResponses must be an object')
  task.answer(responses)
  return {}
}

/** A failed tool is a completed task; only a protocol error makes a task fail. */
async function runTask(task: Task, tool: Tool, call: Call): Promise<void> {
  try {
    task.complete(await tool.run(call))
  } catch (error) {
    const code = error instanceof RpcError ? error.code : INTERNAL_ERROR
    task.fail({ code, message: error instanceof Error ? error.message : String(error) })
  }
}

/** The request is over: questions go through the task, and nothing may be said on the way. */
function behindTask(call: Call, task: Task): Call {
  return {
    ...call,
    channel: SILENT,
    signal: AbortSignal.any([task.abort.signal, call.world.signal]),
    log: () => {},
    progress: () => {},
    ask: async (requests) => {
      demandDeclared(Object.values(requests), call.origin.clientCapabilities)
      const answers = Object.entries(requests).map(async ([key, request]) => [key, await task.ask(request)] as const)
      return Object.fromEntries(await Promise.all(answers))
    },
  }
}

const SILENT: Channel = { send: () => {}, pause: () => {}, garbage: () => {}, breakOff: () => {} }
