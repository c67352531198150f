import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '@thv/kernel/json'
import { compileTemplate, render, TemplateError } from '../template.ts'

export interface Judged {
  readonly ok: boolean
  /** The output, or the error. */
  readonly text: string
}

export interface JudgeRow {
  readonly template: string
  readonly data: JsonObject
  /** Go fails, as we do, where nothing or a format that does not fit becomes text. */
  readonly strict?: boolean
}

const BUILD_LIMIT_MS = 300_000

/** Renders with Go's text/template: builds the program beside this file and runs it once. */
export function judgedByGo(rows: readonly JudgeRow[]): readonly Judged[] {
  const folder = mkdtempSync(join(tmpdir(), 'template-judge-'))
  try {
    const env = { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod', GOWORK: 'off' }
    const program = join(folder, 'judge')
    const cwd = fileURLToPath(new URL('go', import.meta.url))
    const built = spawnSync('go', ['build', '-o', program, '.'], { cwd, env, timeout: BUILD_LIMIT_MS, encoding: 'utf8' })
    if (built.status !== 0) throw new Error(`go build failed: ${built.stderr || built.error}`)
    const run = spawnSync(program, { input: JSON.stringify(rows), timeout: 60_000, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
    if (run.status !== 0) throw new Error(`the judge failed: ${run.stderr || run.error}`)
    return JSON.parse(run.stdout) as Judged[]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Renders with our engine. */
export function ours({ template, data }: JudgeRow): Judged & { readonly kind?: TemplateError['kind'] } {
  try {
    return { ok: true, text: render(compileTemplate(template), data) }
  } catch (error) {
    if (error instanceof TemplateError) return { ok: false, text: error.message, kind: error.kind }
    throw error
  }
}

/** The result that our engine must give where Go gives this: the same, but nothing and misprints are errors. */
export function expectedOf({ ok, text }: Judged): { readonly ok: boolean; readonly text?: string } {
  if (!ok || /<no value>|&lt;no value|<nil>|%!/.test(text)) return { ok: false }
  return { ok, text }
}
