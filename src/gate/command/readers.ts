/**
 * Programs that only read, with all of their options that only read. An option that is not listed here
 * (an abbreviation, a new one, one that writes or runs something) means that a person is asked.
 */
import type { OptionSpec } from "./options.ts";

export interface Reader extends OptionSpec {
  /** What the operands are: paths it reads (default), text, or a text first and paths after. */
  readonly operands?: "paths" | "text" | "none" | "text-then-paths" | "one-path";
  /** Options whose value is a path it reads. */
  readonly pathOptions?: readonly string[];
  /** Options that stand for the text operand (grep -e). */
  readonly textOptions?: readonly string[];
}

const help = "help version";
const hash = { short: "bctwz", long: `binary check text tag zero ignore-missing quiet status strict warn ${help}` };
const grep: Reader = {
  short: "EFGPe:f:iyvwxcLlm:oqsbHhnTuZA:B:C:ad:D:IrzU",
  long: `extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case no-ignore-case invert-match word-regexp line-regexp count color? colour? files-without-match files-with-matches max-count= only-matching quiet silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null after-context= before-context= context= text binary-files= devices= directories= exclude= exclude-dir= exclude-from= include= recursive line-buffered null-data binary ${help}`,
  digits: true,
  operands: "text-then-paths",
  pathOptions: ["f", "file", "exclude-from"],
  textOptions: ["e", "regexp", "f", "file"],
};

export const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>(
  Object.entries<Reader>({
    cat: {
      short: "AbeEnstTuv",
      long: `show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting ${help}`,
    },
    tac: { short: "brs:", long: `before regex separator= ${help}` },
    nl: {
      short: "b:d:f:h:i:l:n:ps:v:w:",
      long: `body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= join-blank-lines= number-format= no-renumber number-separator= starting-line-number= number-width= ${help}`,
    },
    head: { short: "c:n:qvz", long: `bytes= lines= quiet silent verbose zero-terminated ${help}`, digits: true },
    tail: {
      short: "c:n:qvzfFs:",
      long: `bytes= lines= quiet silent verbose zero-terminated follow? retry sleep-interval= pid= max-unchanged-stats= ${help}`,
      digits: true,
    },
    wc: { short: "cmlLw", long: `bytes chars lines max-line-length words total= ${help}` },
    ls: {
      short: "aAbBcCdDfFgGhHiI:klmnNopqQrRsStT:uUvw:xXZ1",
      long: `all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format= full-time group-directories-first no-group human-readable si hide= hyperlink? indicator-style= inode ignore= kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= time= time-style= tabsize= width= context zero ${help}`,
    },
    dir: { short: "aAbBcCdDfFgGhHiI:klmnNopqQrRsStT:uUvw:xXZ1", long: help },
    stat: { short: "fc:t", long: `file-system format= printf= terse cached= ${help}` },
    file: {
      short: "bceEhiklNprsv0F:P:",
      long: `brief mime mime-type mime-encoding no-buffer no-dereference dereference keep-going list separator= no-pad raw print0 extension ${help}`,
    },
    du: {
      short: "0aAbcd:hHklmsStxDPB:X:",
      long: `null all apparent-size block-size= bytes total max-depth= human-readable inodes count-links no-dereference separate-dirs si summarize threshold= time? time-style= exclude= one-file-system ${help}`,
      pathOptions: ["X"],
    },
    df: {
      short: "aB:hHiklPt:Tvx:",
      long: `all block-size= human-readable si inodes local no-sync output? portability print-type total type= exclude-type= ${help}`,
      operands: "paths",
    },
    cut: {
      short: "b:c:d:f:nsz",
      long: `bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated ${help}`,
    },
    paste: { short: "d:sz", long: `delimiters= serial zero-terminated ${help}` },
    tr: { short: "cCdst", long: `complement delete squeeze-repeats truncate-set1 ${help}`, operands: "text" },
    rev: { short: "Vh0", long: `zero ${help}` },
    uniq: {
      short: "cdDf:is:uw:z",
      long: `count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated check-chars= ${help}`,
      operands: "one-path",
    },
    sort: {
      short: "bdfghiMnRrVcCk:mst:uzS:",
      long: `ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting month-sort numeric-sort random-sort reverse sort= version-sort check? key= merge stable field-separator= unique zero-terminated parallel= buffer-size= debug batch-size= ${help}`,
    },
    shuf: { short: "ei:n:rz", long: `echo input-range= head-count= repeat zero-terminated ${help}` },
    comm: { short: "123z", long: `check-order nocheck-order output-delimiter= total zero-terminated ${help}` },
    join: { short: "a:e:i1:2:j:o:t:v:z", long: `ignore-case check-order nocheck-order header zero-terminated ${help}` },
    diff: {
      short: "qsceyuUabBdEiltTwZpC:F:I:L:W:nD:",
      long: `normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab tabsize= ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text strip-trailing-cr minimal speed-large-files color? palette= ${help}`,
    },
    cmp: { short: "bi:ln:s", long: `print-bytes ignore-initial= verbose bytes= quiet silent ${help}` },
    fold: { short: "bsw:", long: `bytes spaces width= ${help}` },
    fmt: {
      short: "cp:stuw:g:",
      long: `crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal= ${help}`,
    },
    expand: { short: "it:", long: `initial tabs= ${help}` },
    unexpand: { short: "at:", long: `all first-only tabs= ${help}` },
    column: {
      short: "ts:o:c:xnRrLJN:H:T:W:E:O:d",
      long: `table separator= output-separator= output-width= json tree= ${help}`,
    },
    od: {
      short: "A:abcdfilosj:N:S:t:vw?x",
      long: `address-radix= endian= skip-bytes= read-bytes= strings? format= output-duplicates width? traditional ${help}`,
    },
    hexdump: { short: "bcCdovxe:n:s:", long: "" },
    xxd: { short: "abeEipuCvc:g:l:", operands: "one-path" },
    base64: { short: "diw:", long: `decode ignore-garbage wrap= ${help}` },
    base32: { short: "diw:", long: `decode ignore-garbage wrap= ${help}` },
    cksum: { short: "a:l:z", long: `algorithm= length= tag untagged zero ${help}` },
    sum: { short: "rs", long: help },
    md5sum: hash,
    sha1sum: hash,
    sha224sum: hash,
    sha256sum: hash,
    sha384sum: hash,
    sha512sum: hash,
    b2sum: hash,
    basename: { short: "as:z", long: `multiple suffix= zero ${help}`, operands: "text" },
    dirname: { short: "z", long: `zero ${help}`, operands: "text" },
    realpath: {
      short: "eEmLPqsz",
      long: `canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= strip no-symlinks zero ${help}`,
    },
    readlink: {
      short: "femnqsvz",
      long: `canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero ${help}`,
    },
    tree: {
      short: "adfixL:P:I:phugsDFqNQrtcUvnACSJX",
      long: `noreport prune matchdirs ignore-case filelimit= charset= gitignore inodes device si du timefmt= sort= dirsfirst metafirst ${help}`,
    },
    seq: { short: "f:s:w", long: `format= separator= equal-width ${help}`, operands: "text", digits: true },
    expr: { operands: "text", digits: true },
    numfmt: {
      short: "d:z",
      long: `debug delimiter= field= format= from= from-unit= grouping header? invalid= padding= round= suffix= to= to-unit= zero-terminated ${help}`,
      operands: "text",
    },
    factor: { long: help, operands: "text" },
    true: { operands: "text" },
    false: { operands: "text" },
    ":": { operands: "text" },
    pwd: { short: "LP", operands: "none" },
    whoami: { long: help, operands: "none" },
    id: { short: "aGgnruzZ", long: `group groups name real user zero context ${help}`, operands: "text" },
    groups: { long: help, operands: "text" },
    logname: { long: help, operands: "none" },
    tty: { short: "s", long: `silent quiet ${help}`, operands: "none" },
    uname: {
      short: "asnrvmpio",
      long: `all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system ${help}`,
      operands: "none",
    },
    arch: { long: help, operands: "none" },
    nproc: { long: `all ignore= ${help}`, operands: "none" },
    uptime: { short: "psV", long: `pretty since ${help}`, operands: "none" },
    free: {
      short: "bkmghtwlVs:c:",
      long: `bytes kilo mega giga kibi mebi gibi human si total wide lohi ${help}`,
      operands: "none",
    },
    hostname: { short: "sfidI", long: "short fqdn long ip-address all-ip-addresses domain", operands: "none" },
    lscpu: { short: "abcehJpsxy", long: `all json extended? parse? ${help}`, operands: "none" },
    sleep: { long: help, operands: "text" },
    which: { short: "as", long: `all ${help}`, operands: "text" },
    type: { short: "afptP", operands: "text" },
    cal: { short: "13jmnsSvwY", long: help, operands: "text" },
    grep,
    egrep: grep,
    fgrep: grep,
    locale: {
      short: "ackmv",
      long: `all-locales category-name charmaps keyword-name verbose ${help}`,
      operands: "text",
    },
    getconf: { short: "a", operands: "text" },
    tsort: { long: help },
    pathchk: { short: "pP", long: `portability ${help}`, operands: "text" },
  }),
);
