import { describe, expect, it } from 'vitest'
import { packageIndexes } from './package-indexes.ts'

const files = (texts: Record<string, string>) => async (path: string) => {
  const text = texts[path]
  if (text === undefined) throw new Error(`no ${path}`)
  return text
}
const A = 'https://a.example/simple'
const B = 'https://b.example/simple'

describe('packageIndexes', () => {
  it.each([
    ['nothing', {}, {}, [], false],
    ['pip variables', { PIP_INDEX_URL: A, PIP_EXTRA_INDEX_URL: ` ${B} ` }, {}, [A, B], true],
    ['uv variables', { UV_DEFAULT_INDEX: A, UV_INDEX: `corp=${B}` }, {}, [A, B], false],
    [
      'pip.conf',
      { HOME: '/me' },
      { '/me/.config/pip/pip.conf': `[global]\nindex-url = ${A}\nextra-index-url =\n    ${B}\n` },
      [A, B],
      true,
    ],
    ['pip.conf elsewhere', { PIP_CONFIG_FILE: '/x' }, { '/x': `[global]\nindex-url: ${A}` }, [A], true],
    ['uv.toml', { HOME: '/me' }, { '/me/.config/uv/uv.toml': `[[index]]\nname = "a"\nurl = "${A}"\ndefault = true` }, [A], false],
    ['old uv.toml', { XDG_CONFIG_HOME: '/c' }, { '/c/uv/uv.toml': `index-url = "${A}"\nextra-index-url = ["${B}"]` }, [A, B], false],
    ['UV_CONFIG_FILE', { UV_CONFIG_FILE: '/u' }, { '/u': `index-url = '${A}'`, '/etc/uv/uv.toml': `index-url = "${B}"` }, [A], false],
    [
      'no files',
      { PIP_CONFIG_FILE: '/dev/null', UV_NO_CONFIG: '1' },
      { '/etc/pip.conf': `index-url=${A}`, '/etc/uv/uv.toml': `index-url="${A}"` },
      [],
      false,
    ],
    ['both', { UV_INDEX_URL: B, PIP_INDEX_URL: A }, {}, [B, A], false],
    ['folders and nonsense', { PIP_INDEX_URL: '/opt/wheels', UV_INDEX: 'file:///x no' }, {}, [], false],
  ])('reads %s', async (_what, env, texts, urls, onlyPip) => {
    expect(await packageIndexes(env, files(texts))).toMatchObject({ urls, onlyPip })
  })

  it.each([
    [{ SSL_CERT_FILE: '/s', PIP_CERT: '/p' }, '/s'],
    [{ PIP_CERT: '/p' }, '/p'],
    [{ PIP_CONFIG_FILE: '/x' }, '/conf'],
    [{}, undefined],
  ])('finds the certificates of %j', async (env, caFile) => {
    expect((await packageIndexes(env, files({ '/x': '[global]\ncert = /conf' }))).caFile).toBe(caFile)
  })
})
