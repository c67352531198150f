import { describe, expect, it } from 'vitest'
import {
  CACHEABLE_METHODS,
  INPUT_METHODS,
  LIST_MEMBERS,
  METHODS,
  MODERN_METHODS,
  NAME_SOURCES,
  NOTIFICATIONS,
  REMOVED_IN_MODERN,
  TASK_METHODS,
} from './methods.ts'

describe('methods', () => {
  it('pins the requests of the modern revision', () => {
    expect([...MODERN_METHODS].sort()).toEqual([
      'completion/complete',
      'prompts/get',
      'prompts/list',
      'resources/list',
      'resources/read',
      'resources/templates/list',
      'server/discover',
      'subscriptions/listen',
      'tools/call',
      'tools/list',
    ])
    expect([...TASK_METHODS].sort()).toEqual(['tasks/cancel', 'tasks/get', 'tasks/update'])
  })

  it('pins what the modern revision removed', () => {
    expect([...REMOVED_IN_MODERN].sort()).toEqual([
      'elicitation/create',
      'initialize',
      'logging/setLevel',
      'notifications/elicitation/complete',
      'notifications/initialized',
      'notifications/roots/list_changed',
      'ping',
      'resources/subscribe',
      'resources/unsubscribe',
      'roots/list',
      'sampling/createMessage',
      'tasks/list',
      'tasks/result',
    ])
  })

  it('puts every request into exactly one of served, extension and removed', () => {
    for (const method of Object.values(METHODS)) {
      const homes = [MODERN_METHODS, TASK_METHODS, REMOVED_IN_MODERN].filter((set) => set.has(method))
      expect(homes, method).toHaveLength(1)
    }
  })

  it('pins what is cacheable, what is a list, and what may ask for input', () => {
    expect([...CACHEABLE_METHODS].sort()).toEqual([
      'prompts/list',
      'resources/list',
      'resources/read',
      'resources/templates/list',
      'server/discover',
      'tools/list',
    ])
    expect(Object.fromEntries(LIST_MEMBERS)).toEqual({
      'tools/list': 'tools',
      'prompts/list': 'prompts',
      'resources/list': 'resources',
      'resources/templates/list': 'resourceTemplates',
    })
    expect([...INPUT_METHODS].sort()).toEqual(['prompts/get', 'resources/read', 'tools/call'])
  })

  it('pins where Mcp-Name comes from', () => {
    expect(Object.fromEntries(NAME_SOURCES)).toEqual({
      'tools/call': 'name',
      'prompts/get': 'name',
      'resources/read': 'uri',
      'tasks/get': 'taskId',
      'tasks/update': 'taskId',
      'tasks/cancel': 'taskId',
    })
  })

  it('pins the notifications', () => {
    expect(Object.values(NOTIFICATIONS).sort()).toEqual([
      'notifications/cancelled',
      'notifications/elicitation/complete',
      'notifications/initialized',
      'notifications/message',
      'notifications/progress',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
      'notifications/roots/list_changed',
      'notifications/subscriptions/acknowledged',
      'notifications/tasks',
      'notifications/tasks/status',
      'notifications/tools/list_changed',
    ])
  })
})
