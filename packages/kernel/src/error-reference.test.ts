import { describe, expect, it } from 'vitest'
import { renderErrorReference } from './error-reference.ts'
import { internalErrors, wireErrors } from './error-registry.ts'

describe('renderErrorReference', () => {
  const text = renderErrorReference()
  const rows = text.split('\n').filter((line) => line.startsWith('| `'))

  it('has one row for each code, sorted within its family', () => {
    const names = rows.map((row) => row.split('`')[1])
    expect(names).toEqual([...Object.keys(wireErrors).sort(), ...Object.keys(internalErrors).sort()])
  })

  it('shows number, status, text and meaning', () => {
    expect(rows).toContain(`| \`method_not_found\` | -32601 | 404 | Method not found | ${wireErrors.method_not_found.meaning} |`)
    expect(rows).toContain(`| \`usage\` | ${internalErrors.usage.meaning} |`)
  })

  it('is the same every time and ends with one line feed', () => {
    expect(renderErrorReference()).toBe(text)
    expect(text).toMatch(/^# Errors\n/)
    expect(text).toMatch(/[^\n]\n$/)
  })
})
