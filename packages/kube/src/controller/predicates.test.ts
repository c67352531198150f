import { expect, test } from 'vitest'
import type { ObjectMeta } from '../objects/types.ts'
import {
  and,
  annotationsChanged,
  deletionStarted,
  generationChanged,
  labelsChanged,
  not,
  or,
  type Predicate,
  resourceVersionChanged,
} from './predicates.ts'

const modified = (old: Partial<ObjectMeta>, now: Partial<ObjectMeta>) => ({
  type: 'MODIFIED' as const,
  object: { metadata: { name: 'a', ...now } },
  old: { metadata: { name: 'a', ...old } },
})

test.each<[string, Predicate, Partial<ObjectMeta>, Partial<ObjectMeta>, boolean]>([
  ['generation', generationChanged, { generation: 1 }, { generation: 2 }, true],
  ['same generation', generationChanged, { generation: 1, labels: { a: '1' } }, { generation: 1 }, false],
  ['resourceVersion', resourceVersionChanged, { resourceVersion: '1' }, { resourceVersion: '2' }, true],
  ['same resourceVersion', resourceVersionChanged, { resourceVersion: '1' }, { resourceVersion: '1' }, false],
  ['labels', labelsChanged, { labels: { a: '1' } }, { labels: { a: '2' } }, true],
  ['labels in another order', labelsChanged, { labels: { a: '1', b: '2' } }, { labels: { b: '2', a: '1' } }, false],
  ['no labels, empty labels', labelsChanged, {}, { labels: {} }, false],
  ['any annotation', annotationsChanged(), { annotations: { a: '1' } }, {}, true],
  ['a named annotation', annotationsChanged(['a']), { annotations: { a: '1' } }, { annotations: { a: '2' } }, true],
  ['another annotation', annotationsChanged(['a']), { annotations: { b: '1' } }, { annotations: { b: '2' } }, false],
  ['deletion', deletionStarted, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }, true],
  ['deletion goes on', deletionStarted, { deletionTimestamp: 'x' }, { deletionTimestamp: 'x' }, false],
  ['or', or(generationChanged, labelsChanged), { generation: 1 }, { generation: 1, labels: { a: '1' } }, true],
  ['or of none', or(generationChanged, labelsChanged), { generation: 1 }, { generation: 1 }, false],
  ['and', and(generationChanged, labelsChanged), { generation: 1 }, { generation: 2 }, false],
  ['not', not(generationChanged), { generation: 1 }, { generation: 1 }, true],
])('%s', (_name, predicate, old, now, expected) => {
  expect(predicate(modified(old, now))).toBe(expected)
})

test('additions and deletions pass', () => {
  const object = { metadata: { name: 'a' } }
  for (const predicate of [generationChanged, resourceVersionChanged, labelsChanged, annotationsChanged(), deletionStarted]) {
    expect(predicate({ type: 'ADDED', object })).toBe(true)
    expect(predicate({ type: 'DELETED', object, old: object })).toBe(true)
  }
})
