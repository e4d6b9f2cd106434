// Bundles the page into one file, ../tarsus/view/page.html (or the file named as argument). `make page` runs it.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const sources = ['page.html', 'style.css', 'main.js', 'stage.js', 'shapes.js', 'splats.js', 'sources.js', 'plots.js', 'package.json', 'build.mjs'];
const text = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const hash = createHash('sha256');
for (const name of sources) hash.update(text(name));

const bundle = await build({
  entryPoints: [new URL('main.js', import.meta.url).pathname],
  bundle: true, minify: true, format: 'esm', write: false, legalComments: 'inline', charset: 'utf8', target: 'es2022',
});
// "</script" in the program would end its element; String.replace would read "$&" in it.
const program = bundle.outputFiles[0].text.replaceAll('</script', '<\\/script');
const page = text('page.html').replace('/*STYLE*/', () => text('style.css')).replace('/*PROGRAM*/', () => program)
  .replace('<html lang="en">', `<html lang="en" data-sources="${hash.digest('hex')}">`);
writeFileSync(process.argv[2] ?? new URL('../tarsus/view/page.html', import.meta.url), page);
console.log(`${page.length} bytes`);
