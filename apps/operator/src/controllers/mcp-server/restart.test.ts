import type { Deployment, Pod } from '@thv/kube'
import { MCPServerAnnotation } from '@thv/resources/kinds/mcp-server/constants'
import { describe, expect, test } from 'vitest'
import { podsToRestartNow, restartTime } from './restart.ts'

const TIME = '2026-01-01T10:00:00Z'
const asked = (time: string, strategy?: string) => ({
  metadata: {
    name: 'x',
    annotations: { [MCPServerAnnotation.restartedAt]: time, ...(strategy && { [MCPServerAnnotation.restartStrategy]: strategy }) },
  },
})
const marked = (time?: string) => (time === undefined ? {} : { annotations: { [MCPServerAnnotation.restartedAt]: time } })
const deployment = (time?: string): Deployment => ({ metadata: { name: 'x' }, spec: { template: { metadata: marked(time) } } })
const pod = (name: string, time?: string, deletionTimestamp?: string): Pod => ({
  metadata: { name, ...marked(time), ...(deletionTimestamp && { deletionTimestamp }) },
})

describe('restartTime', () => {
  test.each([
    [TIME, TIME],
    ['2026-01-01T10:00:00.5+01:00', '2026-01-01T10:00:00.5+01:00'],
    ['now', undefined],
    ['2026-01-01', undefined],
    ['2026-13-01T10:00:00Z', undefined],
    ['', undefined],
  ])('%s', (text, expected) => {
    expect(restartTime(asked(text))).toBe(expected)
  })
})

describe('podsToRestartNow', () => {
  const pods = [pod('old'), pod('older', '2025-01-01T00:00:00Z'), pod('new', TIME), pod('going', undefined, TIME)]
  const names = (found: Pod[]) => found.map(({ metadata }) => metadata.name)

  test('old pods, once the template is new', () => {
    expect(names(podsToRestartNow(asked(TIME, 'immediate'), deployment(TIME), pods))).toEqual(['old', 'older'])
  })
  test('none while the pods that replace them would be old too', () => {
    expect(podsToRestartNow(asked(TIME, 'immediate'), deployment(), pods)).toEqual([])
    expect(podsToRestartNow(asked(TIME, 'immediate'), undefined, pods)).toEqual([])
  })
  test('none when that restart was seen to before', () => {
    const { metadata } = asked(TIME, 'immediate')
    const seen = (time: string) => ({
      metadata: { ...metadata, annotations: { ...metadata.annotations, [MCPServerAnnotation.lastProcessedRestart]: time } },
    })
    expect(podsToRestartNow(seen(TIME), deployment(TIME), pods)).toEqual([])
    expect(names(podsToRestartNow(seen('2025-01-01T00:00:00Z'), deployment(TIME), pods))).toEqual(['old', 'older'])
  })
  test.each([undefined, 'rolling', 'whatever'])('none with strategy %s', (strategy) => {
    expect(podsToRestartNow(asked(TIME, strategy), deployment(TIME), pods)).toEqual([])
  })
})
