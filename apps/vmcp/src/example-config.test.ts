import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { loadVmcpConfig } from './config/load-vmcp-config.ts'

const FOLDER = fileURLToPath(new URL('../../../deploy/examples/vmcp/', import.meta.url))

describe('deploy/examples/vmcp', () => {
  it.each(readdirSync(FOLDER))('%s can be served', async (file) => {
    expect((await loadVmcpConfig(`${FOLDER}${file}`)).backends.length).toBeGreaterThan(0)
  })
})
