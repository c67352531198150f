import type { Tool } from '../features/call.ts'
import type { ResolvedOptions } from '../state/options.ts'
import { ASK_TOOLS } from './ask-tools.ts'
import { CONTENT_TOOLS } from './content-tools.ts'
import { FAULT_TOOLS } from './fault-tools.ts'
import { INSPECT_TOOLS } from './inspect-tools.ts'
import { MRTR_TOOLS } from './mrtr-tools.ts'
import { ODD_TOOLS, SCHEMA_TOOLS } from './schema-tools.ts'
import { STREAM_TOOLS } from './stream-tools.ts'
import { TASK_TOOLS } from './task-tools.ts'

const ALL = [
  ...CONTENT_TOOLS,
  ...SCHEMA_TOOLS,
  ...STREAM_TOOLS,
  ...ASK_TOOLS,
  ...MRTR_TOOLS,
  ...TASK_TOOLS,
  ...INSPECT_TOOLS,
  ...FAULT_TOOLS,
]

/** The tools of one fixture by name. */
export function createCatalog(options: Pick<ResolvedOptions, 'only' | 'oddTools'>): Map<string, Tool> {
  const offered = options.oddTools ? [...ALL, ...ODD_TOOLS] : ALL
  const chosen = offered.filter(({ name }) => options.only === undefined || options.only.includes(name))
  return new Map(chosen.map((tool) => [tool.name, tool] as const))
}
