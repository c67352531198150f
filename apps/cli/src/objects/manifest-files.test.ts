import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseManifests, readManifests } from './manifest-files.ts'
import { yamlText } from './yaml-text.ts'

const map = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n${data}`

describe('manifests', () => {
  it('are read as kubectl reads them', () => {
    const { objects } = parseManifests('f', map('  mode: 0644\n  flag: yes\n  quoted: "yes"\n  time: 12:30:45\n  day: 2026-01-02\n'))
    expect(objects[0]?.object).toMatchObject({ data: { mode: 420, flag: true, quoted: 'yes', time: '12:30:45', day: '2026-01-02' } })
  })

  it('that are written read the same in both versions of YAML', () => {
    const value = { a: 'yes', b: '0644', c: '12:30', d: '2026-01-02T03:04:05Z', e: 'null', f: '1e3', g: 'two\nlines\n', on: 'off' }
    const { objects } = parseManifests('f', yamlText({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: value }))
    expect(objects[0]?.object).toMatchObject({ data: value })
  })

  it('know the line of each field, and of the nearest one above it', () => {
    const { objects } = parseManifests('f', `# first\n---\n${map('  key: value\n  list:\n    - name: x\n')}`)
    const [found] = objects
    expect(found?.line).toBe(3)
    expect(
      ['data.list[0].name', 'data.list[0]', 'data.list[7].name', 'data[key]', 'data.gone.deeper', 'spec'].map((field) =>
        found?.lineOf(field),
      ),
    ).toEqual([10, 10, 10, 8, 8, 3])
  })

  it('of a list are its items', () => {
    const item = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [item, { kind: 'X' }] }, null, 1)
    const { objects, problems } = parseManifests('f', text)
    expect(objects.map(({ line }) => line)).toEqual([5])
    expect(problems).toEqual([{ file: 'f', line: 12, message: 'not a Kubernetes object: apiVersion is missing' }])
  })

  it.each([
    ['just a text', /a mapping is expected/],
    ['- a\n- b\n', /a mapping is expected/],
    ['apiVersion: v1\n', /kind is missing/],
    ['apiVersion: v1\nkind: X\n', /metadata\.name is missing/],
    ['apiVersion: v1\nkind: X\nmetadata: { name: y }\n', /metadata\.name is read as the boolean true: put it in quotes/],
    ['apiVersion: v1\nkind: X\nmetadata: { name: 12 }\n', /metadata\.name is read as the number 12: put it in quotes/],
    ['a: b: c\n', /not YAML/],
    [
      `a: &a [x,x]\n${'bcdefgh'
        .split('')
        .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[index]}`).join()}]`)
        .join('\n')}\n`,
      /aliases/,
    ],
  ])('%j is none', (text, message) => {
    const { objects, problems } = parseManifests('f', text)
    expect(objects).toEqual([])
    expect(problems[0]?.message).toMatch(message)
  })

  it('come from files, folders and the standard input, and from nowhere else', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'thv-files-'))
    const env = { cwd: folder, readInput: async () => map('') }
    try {
      writeFileSync(join(folder, 'b.yml'), map(''))
      writeFileSync(join(folder, 'a.json'), '{"apiVersion":"v1","kind":"X","metadata":{"name":"x"}}')
      writeFileSync(join(folder, 'c.status'), 'passed over')
      writeFileSync(join(folder, 'binary.yaml.bin'), Buffer.from([0xff, 0xfe]))
      expect((await readManifests(['.', '-'], env)).objects.map(({ file }) => file)).toEqual(['a.json', 'b.yml', 'standard input'])
      await expect(readManifests(['binary.yaml.bin'], env)).rejects.toThrow('is not text in UTF-8')
      await expect(readManifests(['gone.yaml'], env)).rejects.toThrow('file or folder not found: gone.yaml')
      await expect(readManifests(['https://example.com/x.yaml'], env)).rejects.toThrow('only files are applied')
      await expect(readManifests(['-'], { cwd: folder })).rejects.toThrow('standard input is not available')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
