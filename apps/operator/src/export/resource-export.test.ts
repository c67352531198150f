import { describe, expect, it } from 'vitest'
import { type ResourceOutcome, resourceCondition } from './resource-export.ts'

const outcome = (more: Partial<ResourceOutcome>): ResourceOutcome => ({ registries: [], urls: [], problems: [], isCovered: true, ...more })
const url = { reason: 'InvalidRegistryURL', message: 'toolhive.stacklok.dev/registry-url is no URL' }
const name = { reason: 'InvalidServerName', message: 'the name has a space' }
const conflict = { reason: 'ConflictingConfiguration', message: 'use one of both' }
const listed = { registries: ['team/main'], urls: ['https://x.example/mcp'] }

describe('the condition about the export of a resource', () => {
  it.each([
    ['one problem', { problems: [url] }, 'False', 'InvalidRegistryURL', url.message],
    ['two problems', { problems: [url, name] }, 'False', 'InvalidRegistryURL', `${url.message}; InvalidServerName: ${name.message}`],
    [
      'a problem of one that is listed',
      { ...listed, problems: [name] },
      'True',
      'Exported',
      `listed by team/main at https://x.example/mcp. InvalidServerName: ${name.message}`,
    ],
    [
      'a conflict of one that is listed',
      { ...listed, problems: [conflict] },
      'True',
      'ConflictingConfiguration',
      `listed by team/main at https://x.example/mcp. ${conflict.message}`,
    ],
    [
      'no registry',
      { isCovered: false, problems: [url] },
      'False',
      'NoRegistry',
      'No MCPRegistry exports the namespace team. Set spec.export of one.',
    ],
  ])('%s: names each reason once', (_, more, status, reason, message) => {
    expect(resourceCondition(outcome(more), 'team')).toEqual({ type: 'RegistryExport', status, reason, message })
  })

  it('is absent for a resource that is not marked', () => {
    expect(resourceCondition(undefined, 'team')).toBeUndefined()
  })
})
