import { KINDS } from '@thv/resources/kinds/kinds'
import { API_GROUP } from '@thv/resources/schema/kind-definition'
import { wrapped } from './text/wrapped.ts'

/** Printed by `thv` without a command: the resources, and what to try next. */
export function overview(): string {
  const width = Math.max(...KINDS.map((definition) => definition.kind.length))
  const indent = width + 4
  const kinds = KINDS.map(
    ({ kind, description }) => `  ${kind.padEnd(width)}  ${wrapped(firstSentence(description), { first: indent, indent })}`,
  )
  return `${[
    'ToolHive TS: declare, protect, join and publish MCP servers.',
    '',
    `The ${KINDS.length} resources of ${API_GROUP}:`,
    '',
    ...kinds,
    '',
    'Try next:',
    '  npx thv up                           start the platform on this machine, with two servers',
    '  npx thv apply -f FILE                declare a server of your own',
    '  npx thv ls                           list MCP servers',
    '  npx thv tools NAME                   list the tools of an MCP server, by its name or URL',
    '  npx thv call NAME TOOL name=value    call one of them',
    '  npx thv search TEXT                  find public servers in the registry',
    '  npx thv crds | kubectl apply -f -    install the definitions into a cluster',
    '',
    'Commands: "npx thv help" and docs/reference/thv.md',
    'Fields:   docs/reference/resources.md',
    'Features: docs/features.md',
  ].join('\n')}\n`
}

function firstSentence(text: string): string {
  const end = text.indexOf('. ')
  return end === -1 ? text : text.slice(0, end + 1)
}
