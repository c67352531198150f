import { globSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import { exclusionTable, judgeExclusions } from './exclusion-table.ts'
import { EXCLUSIONS } from './exclusions.ts'
import { LEFT_OUT } from './suites.ts'

const found = { 'a.test.ts': [{ title: 'one', need: 'rbac' }], 'b.test.ts': [] } as const

test('accepts expected exclusions and ignores files that did not run', () => {
  expect(judgeExclusions({ 'a.test.ts': { one: 'rbac' }, 'c.test.ts': { three: 'exec' } }, found)).toEqual([])
})

test('a new exclusion, another need and one that is gone are problems', () => {
  expect(judgeExclusions({}, found)).toEqual(['not listed: a.test.ts: one (rbac)'])
  expect(judgeExclusions({ 'a.test.ts': { one: 'exec' } }, found)).toEqual(['not listed: a.test.ts: one (rbac)'])
  expect(judgeExclusions({ 'a.test.ts': { one: 'rbac', two: 'rbac' }, 'b.test.ts': { three: 'exec' } }, found)).toEqual([
    'listed, but it runs or is gone: a.test.ts: two',
    'listed, but it runs or is gone: b.test.ts: three',
  ])
})

test('the table names and counts each', () => {
  expect(exclusionTable(found)).toMatch(/^1 tests need .*\n {2}rbac {2}a\.test\.ts: one$/)
})

test('every file that is named exists and runs on the embedded plane, and every left out pattern leaves something out', () => {
  const files = globSync('{packages,apps,test}/**/*.cluster.test.ts', { exclude: ['**/node_modules/**'] })
  const isLeftOut = (file: string) => Object.keys(LEFT_OUT).some((pattern) => matchesGlob(file, pattern))
  expect(Object.keys(EXCLUSIONS).filter((file) => !files.includes(file) || isLeftOut(file))).toEqual([])
  expect(Object.keys(LEFT_OUT).filter((pattern) => !files.some((file) => matchesGlob(file, pattern)))).toEqual([])
})
