//! Reads a catalogue from a directory, once, at start-up.
//!
//! The only place of the render layer that touches files. It knows the layout and nothing of the
//! language: each file goes to the catalogue, which compiles it. It must not be called while a
//! notification is accepted.

use std::fs;
use std::path::{Path, PathBuf};

use super::TemplateCatalogue;
use super::template::{Part, Variant};
use crate::error::{Error, ErrorKind, Result};
use crate::model::TenantId;

/// Adds all templates below `root` to `catalogue`, and returns all that is wrong with them. The
/// layout: [`TemplateCatalogue::from_directory`].
///
/// # Errors
/// As [`TemplateCatalogue::read_directory`].
pub(super) fn load(catalogue: &mut TemplateCatalogue, root: &Path) -> Result<Vec<Error>> {
    let top = entries(root).map_err(|error| {
        let message = format!("the template directory {} cannot be read: {error}", root.display());
        Error::new(ErrorKind::Configuration, message).caused_by(error)
    })?;
    let mut problems = Vec::new();
    for entry in top.iter().filter(|entry| entry.is_folder) {
        match entry.name.strip_prefix('@') {
            Some(tenant) => load_tenant(catalogue, tenant, entry, &mut problems),
            None => load_template(catalogue, None, entry, &mut problems),
        }
    }
    Ok(problems)
}

/// A tenant's folder: folders of templates.
fn load_tenant(catalogue: &mut TemplateCatalogue, tenant: &str, folder: &Entry, problems: &mut Vec<Error>) {
    let tenant = TenantId::new(tenant)
        .map_err(|error| Error::new(ErrorKind::Template, format!("{}: {error}", folder.path.display())));
    match tenant.and_then(|tenant| Ok((tenant, inside(folder)?))) {
        Ok((tenant, templates)) => {
            for entry in templates {
                load_template(catalogue, Some(&tenant), &entry, problems);
            }
        }
        Err(error) => problems.push(error),
    }
}

/// One template's folder: parts, and folders of channels with parts. What is wrong with any of them
/// is wrong with the template.
fn load_template(
    catalogue: &mut TemplateCatalogue,
    tenant: Option<&TenantId>,
    folder: &Entry,
    problems: &mut Vec<Error>,
) {
    let before = problems.len();
    if let Err(error) = load_parts(catalogue, tenant, folder, problems) {
        problems.push(error);
    }
    if let Some(problem) = problems.get(before) {
        catalogue.mark_broken(tenant, &folder.name, problem);
    }
}

fn load_parts(
    catalogue: &mut TemplateCatalogue,
    tenant: Option<&TenantId>,
    folder: &Entry,
    problems: &mut Vec<Error>,
) -> Result<()> {
    if !folder.is_folder {
        return Err(folder.refuse("is a file where the folder of a template is expected"));
    }
    let mut parts = 0;
    for entry in inside(folder)? {
        if !entry.is_folder {
            let variant = Variant { tenant, ..Variant::default() };
            problems.extend(load_part(catalogue, &folder.name, variant, &entry).err());
            parts += 1;
            continue;
        }
        let of_channel = inside(&entry)?;
        if of_channel.is_empty() {
            return Err(entry.refuse("has no part at all"));
        }
        for part in &of_channel {
            let variant = Variant { tenant, channel: Some(&entry.name), locale: None };
            problems.extend(load_part(catalogue, &folder.name, variant, part).err());
        }
        parts += of_channel.len();
    }
    if parts == 0 {
        return Err(folder.refuse("has no part at all"));
    }
    Ok(())
}

fn load_part(catalogue: &mut TemplateCatalogue, name: &str, variant: Variant<'_>, file: &Entry) -> Result<()> {
    let Some((part, locale)) = Part::of_file(&file.name).filter(|_| !file.is_folder) else {
        return Err(file.refuse("is no part of a template; known are subject.txt, body.txt, body.html"));
    };
    let source = fs::read_to_string(&file.path).map_err(|error| file.unreadable(error))?;
    let source = source.strip_prefix('\u{feff}').unwrap_or(&source);
    let source = match part {
        Part::Subject => source.strip_suffix('\n').map_or(source, |line| line.strip_suffix('\r').unwrap_or(line)),
        Part::Text | Part::Html => source,
    };
    catalogue.add_variant(name, Variant { locale, ..variant }, part, source)
}

/// A file or folder whose name does not begin with a dot.
#[derive(Debug)]
struct Entry {
    name: String,
    path: PathBuf,
    is_folder: bool,
}

impl Entry {
    fn refuse(&self, why: &str) -> Error {
        Error::new(ErrorKind::Template, format!("{} {why}", self.path.display()))
    }

    fn unreadable(&self, error: std::io::Error) -> Error {
        self.refuse(&format!("cannot be read: {error}")).caused_by(error)
    }
}

fn inside(folder: &Entry) -> Result<Vec<Entry>> {
    entries(&folder.path).map_err(|error| folder.unreadable(error))
}

/// What a folder holds, sorted by name, so that the same mistake is reported every time.
fn entries(folder: &Path) -> std::io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !is_backup(&name) {
            let path = entry.path();
            // Follows a link, as a deployment may consist of links; one into nowhere is told when it is read.
            let is_folder = fs::metadata(&path).is_ok_and(|found| found.is_dir());
            found.push(Entry { name, path, is_folder });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// What editors leave beside a file.
fn is_backup(name: &str) -> bool {
    let ended = |end: &str| name.ends_with(end);
    ended("~") || ended(".bak") || ended(".swp") || ended(".swo") || (name.starts_with('#') && ended("#"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{RenderRequest, Renderer};
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn refusal(files: &[(&str, &str)]) -> Error {
        TemplateCatalogue::from_directory(directory(files).path()).unwrap_err()
    }

    #[test]
    fn a_directory_gives_parts_channels_locales_and_tenants() {
        let root = directory(&[
            ("welcome/subject.txt", "\u{feff}Hello {{ name }}\r\n"),
            ("welcome/body.txt", "Hi\n"),
            ("welcome/body.de.txt", "Hallo\n"),
            ("welcome/body.html", "<p>Hi</p>\n"),
            ("welcome/sms/body.txt", "short"),
            ("@acme/welcome/body.de-AT.txt", "Servus"),
            ("@acme/welcome/body.txt", "acme"),
            ("README.md", "not a template"),
            (".git/config", "not a template"),
            ("welcome/.gitkeep", ""),
            ("welcome/.#body.txt", "{{ half"),
            ("welcome/body.txt~", "{{ half"),
            ("welcome/body.txt.bak", "{{ half"),
            ("welcome/.body.txt.swp", "{{ half"),
            ("welcome/body.de.txt.swp", "{{ half"),
            ("welcome/#body.txt#", "{{ half"),
        ]);
        let catalogue = TemplateCatalogue::from_directory(root.path()).unwrap();
        assert_eq!(catalogue.names().collect::<Vec<_>>(), ["welcome"]);
        let (root_tenant, acme) = (TenantId::ROOT, TenantId::new("acme").unwrap());
        let render = |channel, locale, tenant| {
            let variables = json!({ "name": "Ann" });
            let template = "welcome";
            catalogue.render(&RenderRequest { template, channel, locale, tenant, variables: &variables }).unwrap()
        };
        let shared = render("email", None, &root_tenant);
        assert_eq!(shared.subject.as_deref(), Some("Hello Ann"));
        assert_eq!(shared.text.as_deref(), Some("Hi\n"));
        assert_eq!(shared.html.as_deref(), Some("<p>Hi</p>\n"));
        assert_eq!(render("email", Some("de-CH"), &root_tenant).text.as_deref(), Some("Hallo\n"));
        assert_eq!(render("sms", Some("de"), &root_tenant).text.as_deref(), Some("short"));
        assert_eq!(render("email", Some("de-AT"), &acme).text.as_deref(), Some("Servus"));
        assert_eq!(render("sms", Some("de"), &acme).text.as_deref(), Some("acme"));
    }

    #[test]
    fn only_one_final_newline_is_taken_off_a_subject_file() {
        let root = directory(&[("a/subject.txt", "Hello\n\n")]);
        let catalogue = TemplateCatalogue::from_directory(root.path()).unwrap();
        let variables = json!({});
        let request = RenderRequest {
            template: "a",
            channel: "email",
            locale: None,
            tenant: &TenantId::ROOT,
            variables: &variables,
        };
        assert_eq!(catalogue.render(&request).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn what_is_broken_is_told_to_those_alone_who_ask_for_it() {
        let root = directory(&[
            ("good/body.txt", "fine"),
            ("half/body.txt", "fine"),
            ("half/body.htm", "x"),
            ("half/body.de.txt", "{{ open"),
            ("@acme/good/notes.md", "x"),
            ("@/good/body.txt", "x"),
        ]);
        let (catalogue, problems) = TemplateCatalogue::read_directory(root.path()).unwrap();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        for (place, text) in ["the tenant is empty", "notes.md is no part", "half/body.de.txt", "body.htm is no part"]
            .into_iter()
            .enumerate()
        {
            assert!(told[place].contains(text), "{told:?}");
        }
        let (root_tenant, acme) = (TenantId::ROOT, TenantId::new("acme").unwrap());
        let render = |template, tenant| {
            let variables = json!({});
            catalogue.render(&RenderRequest { template, channel: "email", locale: None, tenant, variables: &variables })
        };
        assert_eq!(render("good", &root_tenant).unwrap().text.as_deref(), Some("fine"));
        assert!(render("half", &root_tenant).unwrap_err().to_string().contains("half/body.de.txt"));
        assert!(render("good", &acme).unwrap_err().to_string().contains("notes.md is no part"));
    }

    #[test]
    fn a_mistake_in_a_directory_is_reported_with_its_file() {
        for (path, content, expected) in [
            ("a/body.txt", "x\n{{ open", "template \"a/body.txt\", line 2: syntax error"),
            ("a/body.htm", "x", "body.htm is no part of a template"),
            ("a/subject.de.html", "x", "subject.de.html is no part"),
            ("a/body.d e.txt", "x", "the locale \"d e\""),
            ("a/SMS/body.txt", "x", "the channel \"SMS\""),
            ("a/sms/deep/body.txt", "x", "deep is no part"),
            ("a b/body.txt", "x", "\"a b\" is no template name"),
            ("a/.hidden", "", "a has no part at all"),
            ("a/sms/.hidden", "", "sms has no part at all"),
            ("@/a/body.txt", "x", "the tenant is empty"),
            ("@acme/body.txt", "x", "body.txt is a file where the folder of a template"),
        ] {
            let error = refusal(&[(path, content)]);
            assert_eq!(error.kind(), ErrorKind::Template, "{path}: {error}");
            assert!(error.to_string().contains(expected), "{path}: {error}");
        }
        let root = directory(&[("a/subject.txt", "")]);
        fs::write(root.path().join("a/body.txt"), b"\xff\xfe").unwrap();
        let error = TemplateCatalogue::from_directory(root.path()).unwrap_err();
        assert!(error.to_string().contains("body.txt cannot be read"), "{error}");
        let error = TemplateCatalogue::from_directory(root.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
    }
}
