//! The catalogue: which sources belong to a request, and rendering them.
//!
//! Filled once at start-up, then shared and only read. It finds the sources, hands them to the
//! engine, and looks at each text before it goes on to the row. Nothing here may read a file
//! (`directory` does, at load) or know the template language (`engine` does).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::engine::{Compiled, Engine, Fault};
use super::template::{Part, Variant, fold_locale, locale_chain};
use super::{RenderRequest, Rendered, Renderer, directory, names, variables};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{TenantId, text};

/// Templates in the jinja language, by name, channel, locale and tenant.
///
/// # Which source is taken
/// 1. **Folder**: the tenant's before the shared one, and within each the channel's before the
///    general one. The first that has any part is taken whole; nothing is mixed in from another.
/// 2. **Locale**: of that folder, the bodies (text and HTML) in the first locale of `de-AT`, `de`,
///    none that has one; so they are never of two languages. The subject is of that locale, or
///    else of the next one after it that has one.
///
/// # Rules of the language
/// - A variable that is **missing** is an error wherever it is used; so is **null** where it is
///   printed or given to a filter that makes text (`upper`, `trim`, `format`, …). An empty text,
///   `0` and `false` are printed as they are. `default("…")` stands in for both missing and null,
///   `{% if x is defined %}` asks for the one and `{% if x %}` is false for the other. A null
///   inside a printed list, or joined on by `~`, `join` or `indent`, is the engine's `None`.
/// - `replace` replaces all and takes no count.
/// - Variables are **escaped in the HTML part only**, once, unless the template itself says `safe`;
///   subject and text are verbatim.
/// - The rendered **subject** is one line without blanks taken off: a line break in it is an error.
///   No part may hold a NUL.
/// - One part may cost [`DEFAULT_FUEL`](super::DEFAULT_FUEL) and come to
///   [`MAX_OUTPUT_BYTES`](super::MAX_OUTPUT_BYTES).
/// - A template cannot include, import or extend another one, and has no `namespace`; totals are
///   made with `sum`.
/// - These limits bound what a mistake costs. Sources themselves are trusted as configuration is:
///   one that is written to harm can overflow the stack while it is compiled.
/// - A template may lack any part, but not all: one with an HTML part alone gives the row no text.
///
/// Source: contract C2.1; cases C06, C24, C51, C52.
#[derive(Clone)]
pub struct TemplateCatalogue {
    engine: Engine,
    templates: BTreeMap<String, BTreeMap<FolderKey, Folder>>,
    /// What is wrong with a template of a directory that was read as far as it can be.
    broken: BTreeMap<(Option<TenantId>, String), String>,
}

/// The tenant (none: shared) and the channel (none: any) of a folder.
type FolderKey = (Option<TenantId>, Option<String>);

/// The sources of one folder, by part and folded locale.
type Folder = BTreeMap<(Part, Option<String>), Source>;

#[derive(Debug, Clone)]
struct Source {
    path: String,
    locale: Option<String>,
    compiled: Compiled,
}

impl TemplateCatalogue {
    /// A catalogue without templates.
    #[must_use]
    pub fn new() -> Self {
        Self { engine: Engine::new(), templates: BTreeMap::new(), broken: BTreeMap::new() }
    }

    /// Reads all templates of a directory, once; later changes of the files have no effect.
    ///
    /// The layout, in which everything but one part is optional:
    ///
    /// ```text
    /// welcome/subject.txt          one line; the file's final newline is not part of it
    /// welcome/body.txt
    /// welcome/body.html
    /// welcome/body.de.txt          German; body.de-AT.txt: Austrian German
    /// welcome/sms/body.txt         for the channel sms
    /// @acme/welcome/body.txt       for the tenant acme; channels and locales as above
    /// ```
    ///
    /// Names that begin with a dot are skipped everywhere, and so are files at the top and what
    /// editors leave (`body.txt~`, `#body.txt#`, `body.txt.bak`, `body.txt.swp`). A byte order mark
    /// is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Template`], naming the file: it cannot be read, is not UTF-8, has a name that
    /// is no part, or does not compile; or a template's folder has no part at all.
    /// [`ErrorKind::Configuration`] if the directory itself cannot be read.
    pub fn from_directory(path: impl AsRef<Path>) -> Result<Self> {
        let (catalogue, problems) = Self::read_directory(path)?;
        problems.into_iter().next().map_or(Ok(catalogue), Err)
    }

    /// As [`Self::from_directory`], but a mistake in one template is no error of the others: all
    /// mistakes are returned, and only who asks for such a template is told of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the directory itself cannot be read.
    pub fn read_directory(path: impl AsRef<Path>) -> Result<(Self, Vec<Error>)> {
        let mut catalogue = Self::new();
        let problems = directory::load(&mut catalogue, path.as_ref())?;
        Ok((catalogue, problems))
    }

    /// Keeps what is left of a template from being rendered.
    pub(super) fn mark_broken(&mut self, tenant: Option<&TenantId>, name: &str, problem: &Error) {
        self.broken.entry((tenant.cloned(), name.to_owned())).or_insert_with(|| problem.to_string());
    }

    /// Changes what one part may cost; see [`DEFAULT_FUEL`](super::DEFAULT_FUEL) for the unit.
    #[must_use]
    pub fn with_fuel(mut self, fuel: u64) -> Self {
        self.engine.set_fuel(fuel);
        self
    }

    /// Adds one part of a template, for all channels and tenants, in the default language.
    ///
    /// `source` is taken as it is: a newline at the end of a subject is refused when it is rendered.
    ///
    /// # Errors
    /// As [`Self::add_variant`].
    pub fn add(&mut self, name: &str, part: Part, source: &str) -> Result<()> {
        self.add_variant(name, Variant::default(), part, source)
    }

    /// Adds one part of a template for some channel, language or tenant, and compiles it.
    ///
    /// # Errors
    /// [`ErrorKind::Template`], naming template, part and line, if it does not compile; also if it
    /// holds a NUL, was added before, or if name (1 to 64 ASCII letters, digits, `_`, `-`), channel
    /// or locale is malformed. The catalogue is then as it was.
    pub fn add_variant(&mut self, name: &str, variant: Variant<'_>, part: Part, source: &str) -> Result<()> {
        names::check(name)?;
        variant.check()?;
        let path = variant.path(name, part);
        let refuse = |why: &str| Err(refused(format!("template {path:?}: {why}")));
        if source.contains('\0') {
            return refuse("the source holds a NUL character");
        }
        let tenant = variant.tenant.filter(|tenant| !tenant.is_root()).cloned();
        let folder = (tenant, variant.channel.map(str::to_owned));
        let slot = (part, variant.locale.map(fold_locale));
        if self.templates.get(name).and_then(|folders| folders.get(&folder)?.get(&slot)).is_some() {
            return refuse("it is added twice");
        }
        let compiled = self.engine.compile(part, source).map_err(|fault| broken(&path, &fault))?;
        let source = Source { path, locale: variant.locale.map(str::to_owned), compiled };
        self.templates.entry(name.to_owned()).or_default().entry(folder).or_default().insert(slot, source);
        Ok(())
    }

    /// The names of all templates that some tenant has, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.templates.keys().map(String::as_str)
    }

    /// The folder that answers the request.
    fn folder(&self, request: &RenderRequest<'_>) -> Result<&Folder> {
        names::check(request.template)?;
        for tenant in [Some(request.tenant.clone()), None] {
            if let Some(problem) = self.broken.get(&(tenant, request.template.to_owned())) {
                return Err(refused(problem.clone()));
            }
        }
        let seen = |(tenant, _): &FolderKey| tenant.as_ref().is_none_or(|tenant| tenant == request.tenant);
        let Some(folders) = self.templates.get(request.template).filter(|folders| folders.keys().any(seen)) else {
            let known = self.templates.iter().filter(|(_, folders)| folders.keys().any(seen));
            let known = names::nearest(request.template, known.map(|(name, _)| name.as_str()).collect());
            let message = format!("there is no template {:?}; {known}", request.template);
            return Err(refused(message));
        };
        let own = Some(request.tenant.clone());
        for tenant in [own, None] {
            for channel in [Some(request.channel.to_owned()), None] {
                if let Some(folder) = folders.get(&(tenant.clone(), channel)) {
                    return Ok(folder);
                }
            }
        }
        Err(refused(format!("the template {:?} has no part for the channel {:?}", request.template, request.channel)))
    }

    fn render_part(&self, part: Part, source: &Source, variables: &minijinja::Value) -> Result<String> {
        let rendered = self.engine.render(&source.compiled, variables).map_err(|fault| broken(&source.path, &fault))?;
        let what = format!("{} of the template {:?}", part.label(), source.path);
        match part {
            Part::Subject => text::refuse_line_break(&what, &rendered)?,
            Part::Text | Part::Html => text::refuse_nul(&what, &rendered)?,
        }
        Ok(rendered)
    }
}

impl Renderer for TemplateCatalogue {
    fn render(&self, request: &RenderRequest<'_>) -> Result<Rendered> {
        let folder = self.folder(request)?;
        let variables = variables::read(request.variables)?;
        let chain = locale_chain(request.locale);
        let source = |part: Part, locale: &Option<String>| folder.get(&(part, locale.clone()));
        let has_body = |locale| source(Part::Text, locale).or(source(Part::Html, locale)).is_some();
        // Without a body in any of the locales, the subject may be of each of them.
        let body_at = chain.iter().position(has_body);
        let body = |part| body_at.and_then(|at| source(part, &chain[at]));
        let subject = chain[body_at.unwrap_or(0)..].iter().find_map(|locale| source(Part::Subject, locale));
        let (text, html) = (body(Part::Text), body(Part::Html));
        let Some(first) = text.or(html).or(subject) else {
            return Err(refused(format!("the template {:?} has no part in the default language", request.template)));
        };
        let render =
            |part, source: Option<&Source>| source.map(|source| self.render_part(part, source, &variables)).transpose();
        Ok(Rendered {
            subject: render(Part::Subject, subject)?,
            text: render(Part::Text, text)?,
            html: render(Part::Html, html)?,
            template: request.template.to_owned(),
            locale: first.locale.clone(),
        })
    }
}

impl Default for TemplateCatalogue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TemplateCatalogue {
    /// The names alone: sources are long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemplateCatalogue").field("names", &self.templates.keys()).finish_non_exhaustive()
    }
}

/// The error of a source that does not compile or render.
fn broken(path: &str, fault: &Fault) -> Error {
    let line = fault.line.map(|line| format!(", line {line}")).unwrap_or_default();
    refused(format!("template {path:?}{line}: {}", fault.reason))
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Template, message)
}
