import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf } from '../../schema/kind-definition.ts'
import { int32, list, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { MCPGroupCondition } from './constants.ts'

const spec = obj('Settings of the group. Members reference the group with groupRef.', {
  description: opt(str('Description of the group.', { maxLength: 4096 })),
})

const memberNames = (what: string) => list(`Names of the ${what} that name this group, sorted.`, str('Name of a member.'), { merge: 'set' })

const status = obj(
  'Members of the group.',
  {
    observedGeneration: opt(observedGeneration()),
    phase: opt(
      oneOf(
        'Ready once the members were listed, even if there are none; Failed while the operator cannot list them.',
        ['Ready', 'Pending', 'Failed'],
        { default: 'Pending' },
      ),
    ),
    servers: opt(memberNames('MCPServers')),
    serverCount: opt(int32('Number of MCPServers and MCPServerEntries in the group.')),
    remoteProxies: opt(memberNames('MCPRemoteProxies')),
    remoteProxyCount: opt(int32('Number of MCPRemoteProxies in the group.')),
    serverEntries: opt(memberNames('MCPServerEntries')),
    serverEntryCount: opt(int32('Number of MCPServerEntries in the group.')),
    conditions: opt(conditions()),
  },
  // A group that no operator has examined has a phase too.
  { default: { phase: 'Pending' } },
)

export const mcpGroup = {
  kind: 'MCPGroup',
  plural: 'mcpgroups',
  singular: 'mcpgroup',
  shortNames: ['mcpg', 'mcpgroup'],
  description: 'A logical group of MCP servers, remote proxies and server entries. Creates nothing; a VirtualMCPServer joins its members.',
  spec,
  specRequired: false,
  status,
  columns: [
    { name: 'Servers', type: 'integer', jsonPath: '.status.serverCount', description: 'Number of MCPServers and MCPServerEntries.' },
    { name: 'Proxies', type: 'integer', jsonPath: '.status.remoteProxyCount', description: 'Number of MCPRemoteProxies.' },
    { name: 'Entries', type: 'integer', jsonPath: '.status.serverEntryCount', description: 'Number of MCPServerEntries.' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Ready, Pending or Failed.' },
    conditionColumn('Checked', MCPGroupCondition.MCPServersChecked),
    AGE_COLUMN,
  ],
} as const

export type MCPGroup = Omit<ObjectOf<typeof mcpGroup>, 'spec'> & Partial<Pick<ObjectOf<typeof mcpGroup>, 'spec'>>
export const mcpGroupType = resourceTypeOf(mcpGroup)
