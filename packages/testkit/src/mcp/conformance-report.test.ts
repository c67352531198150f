import { describe, expect, it } from 'vitest'
import { readReport } from './conformance-report.ts'

const OUTPUT = `Running requirements 2025-11-25 (3 scenarios) against http://127.0.0.1:1/mcp

=== SUMMARY ===
✓ ping: 2 passed, 0 failed
✗ tools-list: 1 passed, 1 failed
✗ broken: 0 passed, 1 failed
✗ server-sse-polling: 0 passed, 1 failed

Total: 3 passed, 3 failed

Not scored for 2025-11-25: 1 scenario(s) run, 1 failing. These do not affect conformance.
  ✗ server-sse-polling (pending)
`

const FILES = new Map([
  ['ping', [check('a', 'SUCCESS'), check('b', 'WARNING', 'should be quicker')]],
  ['tools-list', [check('c', 'SUCCESS'), check('d', 'FAILURE', 'no name')]],
  ['server-sse-polling', [check('e', 'FAILURE', 'no priming event')]],
])

describe('readReport', () => {
  it('counts scored scenarios apart from the others', () => {
    const report = readReport({ output: OUTPUT, exitCode: 1, files: FILES })
    expect(report.scored).toEqual({ passed: 1, total: 3 })
    expect(report.all).toEqual({ passed: 1, total: 4 })
    expect(report.checks).toEqual({ passed: 2, failed: 2, warnings: 1 })
  })

  it('names each failed check, and a scenario that broke off', () => {
    const report = readReport({ output: OUTPUT, exitCode: 1, files: FILES })
    expect(report.failures).toEqual(['tools-list: d: no name', 'broken: did not run to its end', 'server-sse-polling: e: no priming event'])
    expect(report.warnings).toEqual(['ping: b: should be quicker'])
  })

  it('goes by the files when a single scenario was run', () => {
    const report = readReport({ output: 'Test Results:', exitCode: 1, files: new Map([['ping', [check('a', 'FAILURE', 'no answer')]]]) })
    expect(report.scored).toEqual({ passed: 0, total: 1 })
  })

  it('does not call a run good that judged nothing', () => {
    expect(() => readReport({ output: 'Unknown suite: al', exitCode: 1, files: new Map() })).toThrow(/judged nothing.*Unknown suite/s)
  })
})

function check(id: string, status: 'SUCCESS' | 'FAILURE' | 'WARNING', errorMessage?: string) {
  return { id, status, ...(errorMessage ? { errorMessage } : {}) }
}
