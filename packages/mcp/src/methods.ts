/** Method names of both eras, as they stand on the wire. */
export const METHODS = {
  initialize: 'initialize',
  ping: 'ping',
  discover: 'server/discover',
  toolsList: 'tools/list',
  toolsCall: 'tools/call',
  resourcesList: 'resources/list',
  resourceTemplatesList: 'resources/templates/list',
  resourcesRead: 'resources/read',
  resourcesSubscribe: 'resources/subscribe',
  resourcesUnsubscribe: 'resources/unsubscribe',
  promptsList: 'prompts/list',
  promptsGet: 'prompts/get',
  complete: 'completion/complete',
  setLevel: 'logging/setLevel',
  listen: 'subscriptions/listen',
  createMessage: 'sampling/createMessage',
  elicit: 'elicitation/create',
  rootsList: 'roots/list',
  tasksGet: 'tasks/get',
  tasksUpdate: 'tasks/update',
  tasksCancel: 'tasks/cancel',
  tasksResult: 'tasks/result',
  tasksList: 'tasks/list',
} as const

export const NOTIFICATIONS = {
  initialized: 'notifications/initialized',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
  message: 'notifications/message',
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
  resourcesUpdated: 'notifications/resources/updated',
  rootsListChanged: 'notifications/roots/list_changed',
  elicitationComplete: 'notifications/elicitation/complete',
  subscriptionsAcknowledged: 'notifications/subscriptions/acknowledged',
  tasksStatus: 'notifications/tasks/status',
  tasks: 'notifications/tasks',
} as const

/** Requests of revision 2026-07-28, without those of extensions. */
export const MODERN_METHODS: ReadonlySet<string> = new Set([
  METHODS.discover,
  METHODS.toolsList,
  METHODS.toolsCall,
  METHODS.resourcesList,
  METHODS.resourceTemplatesList,
  METHODS.resourcesRead,
  METHODS.promptsList,
  METHODS.promptsGet,
  METHODS.complete,
  METHODS.listen,
])

/** Requests of the tasks extension; a server without it refuses them. */
export const TASK_METHODS: ReadonlySet<string> = new Set([METHODS.tasksGet, METHODS.tasksUpdate, METHODS.tasksCancel])

/** Known to legacy, gone in 2026-07-28: answered 404 with -32601 there, also with a perfect envelope. */
export const REMOVED_IN_MODERN: ReadonlySet<string> = new Set([
  METHODS.initialize,
  METHODS.ping,
  METHODS.setLevel,
  METHODS.resourcesSubscribe,
  METHODS.resourcesUnsubscribe,
  METHODS.createMessage,
  METHODS.elicit,
  METHODS.rootsList,
  METHODS.tasksResult,
  METHODS.tasksList,
  NOTIFICATIONS.initialized,
  NOTIFICATIONS.rootsListChanged,
  NOTIFICATIONS.elicitationComplete,
])

/** Results that must carry `ttlMs` and `cacheScope` when they are complete. */
export const CACHEABLE_METHODS: ReadonlySet<string> = new Set([
  METHODS.discover,
  METHODS.toolsList,
  METHODS.promptsList,
  METHODS.resourcesList,
  METHODS.resourceTemplatesList,
  METHODS.resourcesRead,
])

/** The cacheable ones that are lists, in pages; the array's member is the key to filter by. */
export const LIST_MEMBERS: ReadonlyMap<string, 'tools' | 'prompts' | 'resources' | 'resourceTemplates'> = new Map([
  [METHODS.toolsList, 'tools'],
  [METHODS.promptsList, 'prompts'],
  [METHODS.resourcesList, 'resources'],
  [METHODS.resourceTemplatesList, 'resourceTemplates'],
])

/** The only methods that may be answered with `input_required`. */
export const INPUT_METHODS: ReadonlySet<string> = new Set([METHODS.toolsCall, METHODS.resourcesRead, METHODS.promptsGet])

export type NameSource = 'name' | 'uri' | 'taskId'

/** Requests that must repeat one member of their params in the `Mcp-Name` header, and which one. */
export const NAME_SOURCES: ReadonlyMap<string, NameSource> = new Map([
  [METHODS.toolsCall, 'name'],
  [METHODS.promptsGet, 'name'],
  [METHODS.resourcesRead, 'uri'],
  [METHODS.tasksGet, 'taskId'],
  [METHODS.tasksUpdate, 'taskId'],
  [METHODS.tasksCancel, 'taskId'],
])
